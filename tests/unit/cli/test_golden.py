"""Golden transcripts of the command line; `tests.unit.cli.transcripts` says what is in one."""

from pathlib import Path

import pytest

from hascheduler.clock import SystemClock
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.transcripts import WRITES, played

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
