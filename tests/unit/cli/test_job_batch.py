"""``hascheduler job batch``: JSON lines or YAML, an answer for each job, and nothing twice."""

import json
from pathlib import Path
from typing import Any

import pytest

from hascheduler.client import bodies
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

_YAML = """
- {ref: a, definition: log}
- definition: log
  depends_on: ["ref:a"]
"""


@pytest.mark.parametrize(
    "text",
    [
        _YAML,
        '{"ref": "a", "definition": "log"}\n\n{"definition": "log", "depends_on": ["ref:a"]}\n',
        '\ufeff{"ref": "a", "definition": "log"}\n{"definition": "log", "depends_on": ["ref:a"]}\n',
        '[{"ref": "a", "definition": "log"}, {"definition": "log", "depends_on": ["ref:a"]}]',
    ],
)
async def test_a_file_is_json_lines_or_a_list(replica: Replica, world: World, text: str) -> None:
    shown = (await replica.done("job", "batch", "-", input=text, COLUMNS="120")).out
    first, second = sorted(job["_id"] for job in world.everything()[Collection.JOBS])
    assert ["1", "a", "submitted", first] in [line.split() for line in shown.splitlines()]
    assert world.job(second)["waits_for"] == [first]
    assert f"2 submitted in {world.job(first)['batch']}\n" in shown


async def test_of_an_atomic_file_all_jobs_are_submitted_or_none(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = '{"definition": "log"}\n{"definition": "a/b"}\n'
    ended = await replica.run("job", "batch", "-", "--atomic", input=wrong)
    assert (ended.status, ended.out, "jobs.1.definition" in ended.err) == (2, "", True)
    assert world.everything()[Collection.JOBS] == []
    shown = (await replica.done("job", "batch", "-", "--atomic", input=_YAML)).out
    assert "2 submitted in batch:" in shown
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 1)
    ended = await replica.run("job", "batch", "-", "--atomic", input=_YAML)
    assert (ended.status, "all or none" in ended.err) == (2, True)


async def test_refused_jobs_stand_beside_the_submitted_ones(replica: Replica, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"definition": "log"}\n{"definition": "a/b", "ref": "second"}\n7\n')
    ended = await replica.run("job", "batch", str(file), COLUMNS="160")
    assert (ended.status, ended.err) == (1, "")
    [row] = [line.split(maxsplit=3) for line in ended.out.splitlines() if "second" in line]
    assert row[:3] == ["2", "second", "refused"]
    assert row[3].startswith("definition: 'a/b' is not a name")
    assert "1 submitted, 2 refused in batch:" in ended.out
    answer: Any = (await replica.run("job", "batch", str(file), "--json")).json
    assert [one["status"] for one in answer["results"]] == [201, 422, 422]


async def test_under_one_key_they_are_the_same_jobs(replica: Replica, world: World) -> None:
    asked = ("job", "batch", "-", "--idempotency-key", "import-1")
    await replica.done(*asked, input=_YAML)
    assert "2 known already in batch:" in (await replica.done(*asked, input=_YAML)).out
    assert len(world.everything()[Collection.JOBS]) == 2


async def test_a_key_too_long_for_the_last_request_is_refused_before_the_first(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 1)
    ended = await replica.run(
        "job", "batch", "-", "--idempotency-key", "k" * 255, input=_YAML.replace("ref:a", "job:1")
    )
    assert (ended.status, "can't be a key" in ended.err) == (2, True)
    assert world.everything()[Collection.JOBS] == []


async def test_many_go_in_several_requests_and_only_what_is_refused_is_listed(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 40)
    lines = [json.dumps({"definition": "log", "target": str(n)}) for n in range(99)]
    lines[60] = '{"definition": "a/b"}'
    asked = ("job", "batch", "-", "--idempotency-key", "import-1")
    ended = await replica.run(*asked, input="\n".join(lines), COLUMNS="200")
    assert ended.status == 1
    assert len(world.everything()[Collection.JOBS]) == 98
    assert "98 submitted, 1 refused in batch:" in ended.out
    rows = [line.split() for line in ended.out.splitlines() if "–" in line]
    assert [row[0] for row in rows] == ["61"]
    assert "98 known already, 1 refused" in (await replica.run(*asked, input="\n".join(lines), COLUMNS="200")).out


async def test_without_an_answer_it_says_how_to_repeat_the_command() -> None:
    ended = await Replica("http://127.0.0.1:1").run("job", "batch", "-", input=_YAML)
    assert (ended.status, ended.err.count("\n")) == (1, 1)
    assert "0 of 2 jobs were answered; repeated with --idempotency-key " in ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "FILE: standard input holds no jobs"),
        ("[]", "FILE: standard input holds no jobs"),
        ("definition: log", "standard input: is no list of jobs"),
        ('{"definition": "log"}\n{', "standard input, line 2: is not JSON"),
        ('{"definition": NaN}', "standard input, line 1: is not JSON: NaN is no number"),
        ("- a: [", "standard input, line"),
    ],
)
async def test_a_mistake_is_one_line_and_status_2(replica: Replica, world: World, text: str, said: str) -> None:
    ended = await replica.run("job", "batch", "-", input=text)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
    assert not world.everything()[Collection.JOBS]
