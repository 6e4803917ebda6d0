"""The files of `apply`: all errors are reported before anything is sent, by file, document and field."""

import re
from pathlib import Path

import pytest

from hascheduler.api.resources.definitions import DefinitionBody, RateLimitBody, RetryBody
from hascheduler.api.resources.lanes import LaneBody
from hascheduler.api.resources.tenants import TenantBody
from hascheduler.api.schedules.bodies import CreateScheduleBody, MisfireBody, TemplateBody
from hascheduler.cli.input.manifests import FIELDS, Manifest, read_manifests
from hascheduler.cli.input.normal_forms import DEFINITION, JOB, LANE, MISFIRE, RATE_LIMIT, RETRY, TENANT
from hascheduler.errors import CallerError
from hascheduler.model.instants import WallMs
from tests.unit.cli.invoking import Replica

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z

_SCHEDULE = """
kind: Schedule
name: tick
trigger: {type: interval, every: 90s}
job: {definition: log}
"""


def read(tmp_path: Path, text: str) -> list[Manifest]:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    return read_manifests([str(file)], NOW)


def test_a_schedule_gets_the_label_of_what_apply_wrote(tmp_path: Path) -> None:
    [manifest] = read(tmp_path, f"{_SCHEDULE}labels: {{team: a, managed-by: me}}\n")
    assert (manifest.kind, manifest.name, manifest.paused) == ("schedule", "tick", None)
    assert manifest.body == {
        "name": "tick",
        "labels": {"team": "a", "managed-by": "hascheduler-apply"},
        "trigger": {"type": "interval", "every": "1m30s"},
        "job": {"definition": "log"},
    }


@pytest.mark.parametrize("paused", [True, False])
def test_whether_it_is_paused_is_kept_apart(tmp_path: Path, paused: bool) -> None:
    [manifest] = read(tmp_path, f"{_SCHEDULE}paused: {str(paused).lower()}\n")
    assert manifest.paused is paused
    assert "paused" not in manifest.body


def test_a_definition_is_read(tmp_path: Path) -> None:
    [manifest] = read(tmp_path, "{kind: Definition, name: repack, max_concurrency: 3, retry: {attempts: 5}}")
    assert manifest == Manifest("definition", "repack", {"name": "repack", "max_concurrency": 3})


def test_lanes_and_tenants_are_read(tmp_path: Path) -> None:
    text = "{kind: Lane, name: bulk, weight: 2, policy: fair}\n---\n{kind: Tenant, name: acme, max_running: 9}"
    assert read(tmp_path, text) == [
        Manifest("lane", "bulk", {"name": "bulk", "weight": 2, "policy": ["tier", "fairness", "arrival"]}),
        Manifest("tenant", "acme", {"name": "acme", "max_running": 9}),
    ]


def test_a_folder_is_read_at_any_depth_in_order_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.yml", "a/z.yaml", "c.json", ".hidden/x.yaml", "notes.txt", "a/.y.yaml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'{{"kind": "Definition", "name": "{file.stem.strip(".")}"}}')
    assert [manifest.name for manifest in read_manifests([str(tmp_path)], NOW)] == ["z", "b", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: a}", "document 1, kind: missing"),
        ("{kind: Schedul, name: a}", "document 1, kind: 'Schedul'; expected Schedule, Definition, Lane or Tenant"),
        ("{kind: [Lane], name: a}", "document 1, kind: \"['Lane']\""),
        ("[1]", "document 1: a list"),
        ("{kind: Definition}", "document 1, name: missing"),
        ("{kind: Definition, name: a/b}", "document 1, name: 'a/b' is not a name"),
        ("{kind: Definition, name: 5}", "document 1, name: a number"),
        ("{kind: Definition, name: a, teir: 3}", "document 1, teir: no such field; expected tier"),
        ("{kind: Definition, name: a, rate_limit: 3}", "document 1, rate_limit: a number"),
        ("{kind: Definition, name: a, rate_limit: {every: 3}}", "document 1, rate_limit.every: no such field"),
        ("{kind: Lane, name: a, tier: 3}", "document 1, tier: no such field"),
        ("{kind: Tenant, name: a, weight: 3}", "document 1, weight: no such field; expected one of name, max_running"),
        ("{kind: Definition, name: a, retry: 3}", "document 1, retry: a number"),
        ("{kind: Definition, name: a}\n---\n{kind: Definition, name: a}", "document 2, name: 'a' is also in"),
        (f"{_SCHEDULE}triger: {{}}", "document 1, triger: no such field; expected trigger"),
        (_SCHEDULE.replace("90s", "-1s"), "document 1, trigger.every: "),
        (_SCHEDULE.replace("every: 90s", "every: 90s, jitter: 2m"), "document 1, trigger.jitter: "),
        (_SCHEDULE.replace("definition", "defintion"), "document 1, job.defintion: no such field; expected definition"),
        (_SCHEDULE.replace("{definition: log}", "{}"), "document 1, job.definition: nothing"),
        (_SCHEDULE.replace("{definition: log}", "log"), "document 1, job: a text"),
        (f"{_SCHEDULE}misfire: {{gracе: 5s}}", "document 1, misfire.gracе: no such field"),
        (f"{_SCHEDULE}misfire: 5s", "document 1, misfire: a text"),
        (f"{_SCHEDULE}labels: {{n: 1}}", "document 1, labels.n: a number"),
        (f"{_SCHEDULE}labels: [a]", "document 1, labels: a list"),
        (f"{_SCHEDULE}paused: 1", "document 1, paused: a number"),
        ("{kind: Schedule, name: a, job: {definition: b}}", "document 1, trigger: nothing"),
        (f"{_SCHEDULE}---\nkind: [", "line 8: "),
    ],
)
def test_an_error_names_its_document_and_field(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CallerError) as refused:
        read(tmp_path, text)
    assert f"{tmp_path}/a.yaml, {said}" in str(refused.value)


def test_all_errors_are_reported_at_once_up_to_a_limit(tmp_path: Path) -> None:
    with pytest.raises(CallerError) as refused:
        read(tmp_path, "---\n".join("{kind: Nothing}\n" for _ in range(25)))
    assert re.findall(r"document (\d+), kind", str(refused.value)) == [str(number) for number in range(1, 11)]
    assert str(refused.value).endswith("| and 15 more")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n"])
def test_no_document_at_all_is_a_mistake(tmp_path: Path, text: str) -> None:
    with pytest.raises(CallerError, match="there is no document"):
        read(tmp_path, text)


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), (b"\xff\xfe", "is not UTF-8")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "a.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CallerError, match=said):
        read_manifests([str(file)], NOW)


def test_the_fields_that_are_known_are_those_of_the_api() -> None:
    assert set(FIELDS["schedule"]) == set(CreateScheduleBody.model_fields)
    assert set(JOB) == set(TemplateBody.model_fields)
    assert set(MISFIRE) == set(MisfireBody.model_fields)
    for kind, schema in (("definition", DefinitionBody), ("lane", LaneBody), ("tenant", TenantBody)):
        assert set(FIELDS[kind]) == {"name", *schema.model_fields}
    assert set(RETRY) == set(RetryBody.model_fields)
    assert set(RATE_LIMIT) == set(RateLimitBody.model_fields)


@pytest.mark.parametrize(("kind", "known"), [("definition", DEFINITION), ("lane", LANE), ("tenant", TENANT)])
async def test_what_is_left_out_of_a_noun_is_what_the_replica_takes_for_it(
    replica: Replica, kind: str, known: dict[str, object]
) -> None:
    shown = (await replica.done(kind, "put", "a", "--json")).json
    assert {name: shown[name] for name in known} == known | (
        # The scope is said even where it is the one of all new definitions.
        {"retry": RETRY, "conflict_scope": "tenant"} if "retry" in known else {}
    )


@pytest.mark.parametrize(("known", "schema"), [(JOB, TemplateBody), (MISFIRE, MisfireBody)])
def test_the_defaults_that_are_left_out_are_those_of_the_api(known: dict[str, object], schema: type) -> None:
    fields = getattr(schema, "model_fields")  # noqa: B009  # mypy does not know which schema
    required = {name for name, field in fields.items() if field.is_required()}
    made = schema(**dict.fromkeys(required, "log"))
    said_otherwise = {*required, "grace", "tenant"}
    assert {name: value for name, value in known.items() if name not in said_otherwise} == {
        name: getattr(made, name) for name in fields if name not in said_otherwise
    }


def test_the_tenant_that_is_left_out_is_that_of_the_api() -> None:
    assert JOB["tenant"] == TemplateBody(definition="log").template().tenant
