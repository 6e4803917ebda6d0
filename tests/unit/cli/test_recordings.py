"""``hascheduler record`` against the real API, and ``hascheduler simulate`` on what it wrote."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.mirror.changes import JobSeen
from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica, invoke
from tests.unit.dispatch.nouns import make_job
from tests.unit.simulate.test_recordings import Load, written


def recorded(*, wrong: bool = False) -> tuple[RecordingHeading, list[RecordedStep | RecordingEnd]]:
    """Of a busy leader; ``wrong``: with a decision that it did not make."""
    load = Load(3, PolicyConfig())
    steps: list[RecordedStep | RecordingEnd] = [
        RecordedStep(load.now, (told,), None) for told in load.core.state_snapshot(load.now)
    ]
    for step in load.steps(80):
        is_first = wrong and bool(step.decisions)
        steps.append(replace(step, decisions=(Dispatch("made up", 1, "p"),)) if is_first else step)
        wrong = wrong and not is_first
    return RecordingHeading(load.now, "r1", 7, DispatchConfig()), [*steps, RecordingEnd("its time was over")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def write(file: Path, heading: RecordingHeading, steps: list[RecordedStep | RecordingEnd]) -> str:
    file.write_text("\n".join(written(*steps, heading=heading)), "utf-8")
    return str(file)


async def test_what_was_recorded_is_replayed_alike(replica: Replica, world: World, file: Path) -> None:
    world.view.heading, world.view.recorded = recorded()
    ended = await replica.done("record", str(file), "--for", "3s")
    assert f"80 steps recorded in {file}: its time was over" in ended.out.replace("\n", "")
    assert world.view.recorded_for_ms == 3_000
    replayed = invoke("simulate", str(file))
    assert (replayed.status, "all are the same" in replayed.out) == (0, True)
    answer: Any = invoke("simulate", str(file), "--json").json
    assert (answer["identical"], answer["steps"], answer["difference"]) == (True, 80, None)


async def test_a_file_that_is_there_is_not_overwritten(replica: Replica, world: World, file: Path) -> None:
    world.view.heading, world.view.recorded = recorded()
    there = write(file, *recorded(wrong=True))
    ended = await replica.run("record", there)
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert "made up" in invoke("simulate", there).out


async def test_a_replica_that_cannot_be_recorded_says_so(replica: Replica, file: Path) -> None:
    ended = await replica.run("record", str(file))
    assert (ended.status, "only the leader can be recorded" in ended.err.replace("\n", " ")) == (2, True)


def test_a_decision_that_was_not_made_ends_with_status_1(file: Path) -> None:
    ended = invoke("simulate", write(file, *recorded(wrong=True)))
    assert ended.status == 1
    assert "recorded  dispatch made up 1 p" in ended.out


def test_another_policy_is_shown_beside_the_one_that_was_recorded(file: Path) -> None:
    ended = invoke("simulate", write(file, *recorded()), "--policy", "affinity", COLUMNS="120")
    assert ended.status == 0, ended
    assert "balanced   affinity" in ended.out
    assert "than under balanced" in ended.out.replace("\n", " ")
    under = json.loads(invoke("simulate", str(file), "--compare", "fair,swimlanes", "--json").out)
    assert list(under) == ["balanced", "fair", "swimlanes"]


def test_what_was_not_due_is_left_out_and_told_of(file: Path) -> None:
    heading, steps = recorded()
    due_ms = WallMs(heading.at_ms + 10**11)
    later = make_job("later", definition="x", submitted_at_ms=heading.at_ms, not_before_ms=due_ms)
    written_to = write(file, heading, [RecordedStep(heading.at_ms, (JobSeen(later),), None), *steps])
    for arguments in (("--compare", "fair"), ("--policy", "fair")):
        shown = " ".join(invoke("simulate", written_to, *arguments, COLUMNS="120").out.split())
        assert "as recorded of r1; without jobs: 1 due after its end" in shown
    under: Any = invoke("simulate", written_to, "--compare", "fair", "--json").json
    assert [each["left_out"] for each in under.values()] == [{"due_later": ["later"]}] * 2


def test_a_line_that_cannot_be_read_is_named(file: Path) -> None:
    lines = write(file, *recorded())
    file.write_text(file.read_text().replace('"now"', '"then"', 1))
    for arguments in ((lines,), (lines, "--policy", "fair")):
        ended = invoke("simulate", *arguments)
        assert ended.status == 2
        assert f"{file}, line.2: " in ended.err
