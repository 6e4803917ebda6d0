"""``hascheduler simulate`` and ``record``: pictures, progress, recordings; what they print is in the transcripts."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.mirror.changes import JobSeen
from hascheduler.model.values.instants import WallMs
from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica, invoke
from tests.unit.cli.terminal import Terminal
from tests.unit.dispatch.nouns import make_job
from tests.unit.simulate.scenarios import document, job, processor
from tests.unit.simulate.test_recordings import Load, written

# Scenarios


@pytest.mark.parametrize(("name", "begins"), spread([("out.SVG", b"<?xml"), ("out.png", b"\x89PNG")], check=1))
def test_a_picture_is_written(name: str, begins: bytes, tmp_path: Path) -> None:
    out = tmp_path / name
    ended = invoke("simulate", "--example", "rarity", "--plot", str(out), "--compare", "fair")
    assert (ended.status, ended.err) == (0, "")
    assert out.read_bytes().startswith(begins)


def test_without_matplotlib_a_picture_is_refused_in_one_line(tmp_path: Path) -> None:
    ours = [name for name in sys.modules if name.startswith("hascheduler.simulate.plot")]
    gone = dict.fromkeys(name for name in sys.modules if name.partition(".")[0] == "matplotlib")
    with patch.dict(sys.modules, {**gone, "matplotlib": None}):
        for name in ours:
            del sys.modules[name]
        ended = invoke("simulate", "--example", "rarity", "--plot", str(tmp_path / "out.png"))
    assert ended.status == 2
    assert ended.err == "hascheduler: --plot: matplotlib is not installed; expected pip install 'hascheduler[plot]'\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
async def test_a_long_run_shows_how_far_it_is_on_a_terminal(tmp_path: Path) -> None:
    long = document(job("g", count=30_000, every=0.5, duration=[1, 2]), processors=[processor(slots=3)])
    (tmp_path / "long.json").write_text(json.dumps(long), "utf-8")
    terminal = Terminal("simulate", str(tmp_path / "long.json"), "--json")
    await terminal.until("/30000")
    assert await terminal.interrupted() == 130


# Recordings


def recorded(*, wrong: bool = False) -> tuple[RecordingHeading, list[RecordedStep | RecordingEnd]]:
    """Return the recording of a busy leader; ``wrong``: with a decision that it did not make."""
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


async def test_what_was_recorded_is_replayed_alike_and_not_overwritten(
    replica: Replica, world: World, file: Path
) -> None:
    refused = await replica.run("record", str(file))
    assert (refused.status, "only the leader can be recorded" in refused.err.replace("\n", " ")) == (2, True)
    world.view.heading, world.view.recorded = recorded()
    ended = await replica.done("record", str(file), "--for", "3s")
    assert f"80 steps recorded in {file}: its time was over" in ended.out.replace("\n", "")
    assert world.view.recorded_for_ms == 3_000
    replayed = invoke("simulate", str(file))
    assert (replayed.status, "all the same" in replayed.out) == (0, True)
    answer: Any = invoke("simulate", str(file), "--json").json
    assert (answer["identical"], answer["steps"], answer["difference"]) == (True, 80, None)
    assert (await replica.run("record", str(file))).status == 2
    assert invoke("simulate", str(file)).out == replayed.out


def test_a_decision_that_was_not_made_ends_with_status_1(file: Path) -> None:
    ended = invoke("simulate", write(file, *recorded(wrong=True)))
    assert ended.status == 1
    assert "recorded  dispatch made up 1 p" in ended.out


def test_another_policy_is_shown_beside_the_one_that_was_recorded(file: Path) -> None:
    heading, steps = recorded()
    due_ms = WallMs(heading.at_ms + 10**11)
    later = make_job("later", definition="x", submitted_at_ms=heading.at_ms, not_before_ms=due_ms)
    write(file, heading, [RecordedStep(heading.at_ms, (JobSeen(later),), None), *steps])
    for arguments in (("--compare", "fair"), ("--policy", "fair")):
        shown = " ".join(invoke("simulate", str(file), *arguments, COLUMNS="120").out.split())
        assert "balanced fair" in shown
        assert "as recorded by r1; jobs left out: 1 due after its end" in shown
    under: Any = invoke("simulate", str(file), "--compare", "fair", "--json").json
    assert {name: each["left_out"] for name, each in under.items()} == {
        "balanced": {"due_later": ["later"]}, "fair": {"due_later": ["later"]},
    }  # fmt: skip
