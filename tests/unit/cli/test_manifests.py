"""The files of `apply`: all errors are reported before anything is sent, by file, document and field."""

import re
from pathlib import Path

import pytest

from hascheduler.cli.input.documents import NORMAL
from hascheduler.cli.input.manifests import Manifest, read_manifests
from hascheduler.errors import CallerError
from hascheduler.model.values.instants import WallMs
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
    return list(read_manifests([str(file)], NOW).manifests)


def test_a_schedule_gets_the_label_of_what_apply_wrote(tmp_path: Path) -> None:
    [manifest] = read(tmp_path, f"{_SCHEDULE}labels: {{team: a, managed-by: me}}\n")
    assert (manifest.kind, manifest.name, manifest.paused) == ("schedule", "tick", None)
    assert manifest.body == {
        "name": "tick",
        "labels": {"team": "a", "managed-by": "hascheduler-apply"},
        "trigger": {"type": "interval", "every": "1m30s"},
        "job": {"definition": "log"},
    }


def test_an_owner_is_read_from_the_files_or_goes_before_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "apply.yaml").write_text("{kind: Apply, owner: team-a}")
    (tmp_path / "tick.yaml").write_text(_SCHEDULE)
    for given, owner in ((None, "team-a"), ("team-b", "team-b")):
        wanted = read_manifests([str(tmp_path)], NOW, given)
        assert wanted.owner == owner
        assert wanted.manifests[0].body["labels"]["apply-owner"] == owner
    (tmp_path / "more.yaml").write_text("{kind: Apply, owner: team-c}")
    assert read_manifests([str(tmp_path)], NOW, "team-b").owner == "team-b"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Apply", "owner: missing"),
        ("{kind: Apply, owner: 5}", "owner: 5 is not a text"),
        ("{kind: Apply, owner: a b}", "owner: 'a b' is not a name"),
        ("{kind: Apply, owner: a, name: x}", "name: no such field"),
        ("{kind: Apply, owner: a}\n---\n{kind: Apply, owner: b}", "owner: a and b; expected one owner, or --owner"),
    ],
)
def test_an_owner_that_is_none_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CallerError, match=words):
        read(tmp_path, text)


def test_whether_it_is_paused_is_kept_apart(tmp_path: Path) -> None:
    for paused in (True, False):
        [manifest] = read(tmp_path, f"{_SCHEDULE}paused: {str(paused).lower()}\n")
        assert (manifest.paused, "paused" in manifest.body) == (paused, False)


def test_nouns_are_read_without_what_is_their_default(tmp_path: Path) -> None:
    text = (
        "{kind: Definition, name: repack, max_concurrency: 3, retry: {attempts: 5}}\n---\n"
        "{kind: Lane, name: bulk, weight: 2, policy: fair}\n---\n{kind: Tenant, name: acme, max_running: 9}"
    )
    assert read(tmp_path, text) == [
        Manifest("definition", "repack", {"name": "repack", "max_concurrency": 3}),
        Manifest("lane", "bulk", {"name": "bulk", "weight": 2, "policy": ["tier", "fairness", "arrival"]}),
        Manifest("tenant", "acme", {"name": "acme", "max_running": 9}),
    ]


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
        ("{kind: [Lane], name: a}", "document 1, kind: \"['Lane']\""),
        ("[1]", "document 1: a list is not an object"),
        ("{kind: Definition}", "document 1, name: missing"),
        ("{kind: Definition, name: a/b}", "document 1, name: 'a/b' is not a name"),
        ("{kind: Definition, name: a, teir: 3}", "document 1, teir: no such field; expected tier"),
        ("{kind: Definition, name: a, rate_limit: {every: 3}}", "document 1, rate_limit.every: no such field"),
        ("{kind: Tenant, name: a, weight: 3}", "document 1, weight: no such field; expected one of max_running"),
        ("{kind: Definition, name: a, retry: 3}", "document 1, retry: 3 is not an object"),
        ("{kind: Definition, name: a}\n---\n{kind: Definition, name: a}", "document 2, name: 'a' is also in"),
        (f"{_SCHEDULE}triger: {{}}", "document 1, triger: no such field; expected trigger"),
        (_SCHEDULE.replace("90s", "-1s"), "document 1, trigger.every: "),
        (_SCHEDULE.replace("every: 90s", "every: 90s, jitter: 2m"), "document 1, trigger.jitter: "),
        (_SCHEDULE.replace("definition", "defintion"), "document 1, job.defintion: no such field; expected definition"),
        (_SCHEDULE.replace("{definition: log}", "{}"), "document 1, job.definition: missing"),
        (f"{_SCHEDULE}misfire: {{gracе: 5s}}", "document 1, misfire.gracе: no such field"),
        (f"{_SCHEDULE}labels: [a]", "document 1, labels: a list is not an object"),
        (f"{_SCHEDULE}paused: 1", "document 1, paused: 1 is not true or false"),
        (f"{_SCHEDULE}pause_after_failures: 0", "document 1, pause_after_failures: 0 is too small"),
        ("{kind: Schedule, name: a, job: {definition: b}}", "document 1, trigger: missing"),
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
        (b"", "there is no document"),
        (b"# nothing\n", "there is no document"),
        (b"---\n---\n", "there is no document"),
    ],
)
def test_a_file_that_holds_nothing_to_read_is_refused(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "a.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CallerError, match=said):
        read_manifests([str(file)], NOW)


@pytest.mark.parametrize("kind", ["definition", "lane", "tenant"])
async def test_what_is_left_out_of_a_noun_is_what_the_replica_takes_for_it(replica: Replica, kind: str) -> None:
    assert NORMAL[kind]((await replica.done(kind, "put", "a", "--json")).json) == {"name": "a"}
