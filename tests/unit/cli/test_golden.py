"""Golden files of the command line: transcripts (see `tests.unit.cli.transcripts`), and times that previews print."""

import json
from pathlib import Path
from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.model.values.instants import parse_instant
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.transcripts import WRITES, played

# Transcripts

FILES = {path.stem: path for path in sorted((Path(__file__).parents[2] / "golden/cli").glob("*.txt"))}


@pytest.mark.parametrize("name", FILES)
async def test_what_is_typed_prints_what_the_transcript_has(
    name: str, replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(SystemClock, "wall_ms", lambda _: NOW)
    monkeypatch.chdir(tmp_path)
    text = FILES[name].read_text("utf-8")
    now = await played(text, replica, world, monkeypatch)
    if WRITES:
        FILES[name].write_text(now, "utf-8")
    assert now.splitlines() == text.splitlines()


# Times

TIMES = sorted((Path(__file__).parents[2] / "golden/times").glob("*.json"))
GOLDEN = {path.stem: json.loads(path.read_text("utf-8")) for path in TIMES}


@pytest.mark.parametrize("name", [name for name, golden in GOLDEN.items() if "edits" not in golden])
async def test_a_preview_prints_the_golden_times(name: str, replica: Replica, world: World, tmp_path: Path) -> None:
    golden: Any = GOLDEN[name]
    world.clock.now = parse_instant(golden["from"])
    calendars = [{"kind": "Calendar", "name": name, **body} for name, body in golden.get("calendars", {}).items()]
    schedule = {"kind": "Schedule", "name": "golden", "trigger": golden["trigger"], "job": {"definition": "log"}}
    file = tmp_path / "golden.yaml"
    file.write_text("\n---\n".join(map(json.dumps, [*calendars, schedule])), encoding="utf-8")
    await replica.done("apply", "-f", str(file), "--yes")
    shown = await replica.json("schedule", "preview", "golden", "--count", "40")
    until_ms = parse_instant(golden["until"])
    fires = [fire for fire in shown["fires"] if parse_instant(fire["nominal_at"]) <= until_ms]
    for expected, excluded in (("fires", False), ("left_out", True)):
        times = [parse_instant(fire["nominal_at"]) for fire in fires if fire["excluded"] is excluded]
        assert times == [parse_instant(text) for text in golden["expect"][expected]]
