"""Files of `apply`: YAML read as JSON, errors by file, document and field before anything is sent, one normal form."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.cli.input.documents import NORMAL as FORMS
from hascheduler.cli.input.documents import TEXT_LENGTH_MAX, read_document, read_documents
from hascheduler.cli.input.manifests import Manifest, read_manifests
from hascheduler.cli.input.values import check_job_id
from hascheduler.cli.schedules.options import changed_schedule
from hascheduler.client.requests import job_path
from hascheduler.errors import CallerError, InvalidInput
from hascheduler.model.job import fire_job_id, graph_job_id
from hascheduler.model.partition import with_partition
from hascheduler.model.values.instants import WallMs

# Documents

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize("text", ["2030-01-31T09:30:00+02:00", "2030-01-31", "2030-01-31 09:30:00"])
def test_an_instant_stays_the_text_that_it_is(text: str) -> None:
    assert read_document(f"at: {text}", "x") == {"at": text}


def test_a_merged_mapping_is_a_mapping() -> None:
    text = "base: &base {a: 1, b: 1}\nof: {<<: *base, b: 2}"
    assert read_document(text, "x")["of"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "x, line 2: duplicate key 'a'"),
        ("a: {b: 1, c: 2, b: 3}", "x, line 1: duplicate key 'b'"),
        ("expression: */5 * * * *", "quote text that begins"),
        ("a: [", "x, line 2"),
        ("a: !!python/object:os.system x", "python/object"),
        ("a: !!binary aGk=", "x, document 1, a: a bytes"),
        ("a: 1\n---\na: [.inf]", "x, document 2, a.0: inf is not a JSON number"),
        ("1: 2", "x, document 1: the key 1 is not text"),
        ("? [a]\n: 1", "unhashable"),
        ("\x00", "x: "),
        ("a: &a [*a]", "x, document 1: too large"),
        (_BOMB, "x, document 1: too large"),
        ("[" * 65 + "]" * 65, "x, line 1: nested too deeply"),
        ("[" * 300_000, "x, line 1: nested too deeply"),
        ("a" * (TEXT_LENGTH_MAX + 1), "x: larger than 4 MiB"),
    ],
)
def test_what_json_does_not_have_is_refused_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        list(read_documents(text, "x"))
    assert said in str(refused.value)


@pytest.mark.parametrize("text", ["", "a: 1\n---\nb: 1", "[1]", "text"])
def test_one_document_is_one_object(text: str) -> None:
    with pytest.raises(InvalidInput, match="one YAML document"):
        read_document(text, "x")


# Manifests

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
    return list(read_manifests([str(file)], NOW).manifests)


def test_an_owner_is_read_from_the_files_or_goes_before_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "apply.yaml").write_text("{kind: Apply, owner: team-a}")
    (tmp_path / "tick.yaml").write_text(_SCHEDULE)
    for option, owner in ((None, "team-a"), ("team-b", "team-b")):
        wanted = read_manifests([str(tmp_path)], NOW, option)
        assert wanted.owner == owner
        assert wanted.manifests[0].body["labels"]["apply-owner"] == owner
    (tmp_path / "more.yaml").write_text("{kind: Apply, owner: team-c}")
    assert read_manifests([str(tmp_path)], NOW, "team-b").owner == "team-b"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Apply", "owner: missing"),
        ("{kind: Apply, owner: 5}", "owner: 5 is not a text"),
        ("{kind: Apply, owner: a, name: x}", "name: no such field"),
        ("{kind: Apply, owner: a}\n---\n{kind: Apply, owner: b}", "owner: a and b; expected one owner, or --owner"),
    ],
)
def test_an_owner_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CallerError, match=words):
        read(tmp_path, text)


def test_a_folder_is_read_at_any_depth_in_order_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("b.yml", "a/z.yaml", "c.json", ".hidden/x.yaml", "notes.txt", "a/.y.yaml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'{{"kind": "Definition", "name": "{file.stem.strip(".")}"}}')
    assert [manifest.name for manifest in read_manifests([str(tmp_path)], NOW).manifests] == ["z", "b", "c"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{name: a}", "document 1, kind: missing"),
        ("{kind: Schedul, name: a}", "document 1, kind: 'Schedul'; expected Schedule, Definition, Lane, Calendar or T"),
        ("{kind: Definition}", "document 1, name: missing"),
        ("{kind: Definition, name: a/b}", "document 1, name: 'a/b' is not a name"),
        ("{kind: Definition, name: a, teir: 3}", "document 1, teir: no such field; expected tier"),
        ("{kind: Definition, name: a}\n---\n{kind: Definition, name: a}", "document 2, name: 'a' is also in"),
        (_SCHEDULE.replace("90s", "-1s"), "document 1, trigger.every: "),
        (_SCHEDULE.replace("every: 90s", "every: 90s, jitter: 2m"), "document 1, trigger.jitter: "),
        (f"{_SCHEDULE}misfire: {{gracе: 5s}}", "document 1, misfire.gracе: no such field"),
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"", "contains no documents"),
        (b"---\n---\n", "contains no documents"),
    ],
)
def test_a_file_that_holds_nothing_to_read_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "a.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CallerError, match=said):
        read_manifests([str(file)], NOW)


# Normal forms

TICK: dict[str, Any] = {"name": "tick", "trigger": {"type": "interval", "every": "90s"}, "job": {"definition": "log"}}
NORMAL: dict[str, Any] = {**TICK, "trigger": {"type": "interval", "every": "1m30s"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"labels": {}, "overlap": "allow", "pause_after_failures": None, "paused": False},
        {"misfire": {"grace": 60, "catch_up": "latest", "limit": 1000}},
        {"misfire": {"grace": "60s"}},
        {"job": {"definition": "log", "target": "tick", "payload": None, "priority": 5, "render": False}},
        {"job": {"definition": "log", "tenant": "default", "fairness_key": "default", "resources": None}},
        {"trigger": {"type": "interval", "every": 90, "jitter": "0s", "start_at": None, "exclude": []}},
        {"rev": 7, "next_at": None, "counts": {"fired": 1}, "created_at": "2030-01-01T00:00:00.000Z"},
    ],
)
def test_defaults_and_what_only_answers_have_are_left_out(changes: dict[str, Any]) -> None:
    assert FORMS["schedule"]({**TICK, **changes}) == NORMAL


@pytest.mark.parametrize(("typed", "sent"), [("none", "none"), ("all", "all")])
def test_a_choice_that_is_called_none_is_no_null(typed: str, sent: str) -> None:
    changed = changed_schedule({"misfire_catch_up": typed, "pause_after_failures": "none"})
    assert changed == {"misfire": {"catch_up": sent}, "pause_after_failures": None}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["1s", "cron", "allow"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["at", "grace", "type"]), inner),
    max_leaves=8,
)
_PARTS = [
    "name", "labels", "paused", "trigger", "misfire", "overlap", "job", "retry", "rev", "default_cost", "rate_limit",
    "resources", "weight", "promote_after", "policy",
]  # fmt: skip


@given(body=st.dictionaries(st.sampled_from(_PARTS), _JSON))
def test_whatever_it_is_it_has_a_form_that_is_its_own(body: dict[str, Any]) -> None:
    for normal in FORMS.values():
        assert normal(normal(body)) == normal(body)


def test_what_a_newer_replica_added_stays_in_parts_too() -> None:
    limit = {"key": "target", "max_concurrency": 2, "newer": {"a": 1}}
    said = {"key_limits": [limit], "retry": {"attempts": 6, "newer": [1]}, "newer": "x"}
    answered = {**said, "tier": None, "retry": {**said["retry"], "max": "1m"}, "rev": 3}  # type: ignore[dict-item]
    assert FORMS["definition"](answered) == said


_NO_PAYLOADS: list[Any] = [0, False, "", [], {}, {"a": None}]


@pytest.mark.parametrize(
    ("job", "normal"),
    [
        *(({"payload": none}, {"payload": none}) for none in _NO_PAYLOADS),
        ({"render": 0}, {"render": 0}),
        ({"tenant": "acme", "fairness_key": "acme"}, {"tenant": "acme"}),
        ({"tenant": "acme", "fairness_key": "default"}, {"tenant": "acme", "fairness_key": "default"}),
        ({"resources": {}}, {"resources": {}}),
    ],
)
def test_only_what_means_the_default_of_a_job_is_left_out(job: dict[str, Any], normal: dict[str, Any]) -> None:
    shown = FORMS["schedule"]({**TICK, "job": {"definition": "log", **job}})["job"]
    assert json.dumps(shown) == json.dumps({"definition": "log", **normal})


@pytest.mark.parametrize(
    "id", [graph_job_id(fire_job_id("nightly", 1_893_456_000_000), "load"), with_partition("job:0194f3", "acme")]
)
def test_the_ids_of_all_jobs_are_ids_to_the_command_line_and_the_sdk(id: str) -> None:
    assert check_job_id(id) == id
    assert job_path(id, "why") == f"/v1/jobs/{id}/why"
