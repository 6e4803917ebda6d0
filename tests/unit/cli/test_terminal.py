"""What a person at a terminal sees, is asked, and writes in ``$EDITOR``: nothing is written that was not agreed to."""

import re
from pathlib import Path

import pytest

from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.terminal import Terminal

_TICK = ("schedule", "add", "tick", "--every", "1s", "--definition", "log")
_EDIT = "sed -i 's/every: 1s/every: 2s/'"


async def test_deleting_asks_unless_yes_is_given(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    terminal = Terminal("schedule", "delete", "tick", "--url", replica.url)
    await terminal.until("Delete the schedule tick (every 1s)?")
    terminal.type("n\n")
    assert await terminal.ended() == 0
    assert world.schedule("tick")


@pytest.mark.slow
async def test_watching_shows_what_changes_until_it_is_interrupted(replica: Replica) -> None:
    await replica.done(*_TICK)
    terminal = Terminal("schedule", "list", "--watch", "--url", replica.url)
    await terminal.until("tick")
    await replica.done("schedule", "add", "tock", "--every", "2s", "--definition", "log")
    await terminal.until("tock")
    assert await terminal.interrupted() == 130
    assert "Traceback" not in terminal.shown


def editing(replica: Replica, editor: str, *more: str, kind: str = "schedule", name: str = "tick") -> Terminal:
    return Terminal(kind, "edit", name, *more, HASCHEDULER_URL=replica.url, EDITOR=editor, VISUAL="")


async def test_an_edit_is_shown_agreed_to_and_written(replica: Replica, world: World) -> None:
    await replica.done(*_TICK, "--paused")
    before = world.everything()
    for answer in ("n", "y"):
        terminal = editing(replica, _EDIT)
        await terminal.until("Write this?")
        assert ("+  every: 2s" in terminal.shown, world.everything()) == (True, before)
        terminal.type(f"{answer}\n")
        assert await terminal.ended() == 0
        assert (world.everything() == before) == (answer == "n")
    assert world.schedule()["trigger"]["every_ms"] == 2_000
    assert world.schedule()["paused_at_ms"] is not None


@pytest.mark.parametrize(("meanwhile", "status"), [("another edit", 2), ("no database", 1)])
async def test_a_concurrent_change_is_not_replaced_and_the_text_is_kept(
    replica: Replica, world: World, meanwhile: str, status: int
) -> None:
    await replica.done(*_TICK)
    terminal = editing(replica, _EDIT)
    await terminal.until("Write this?")
    if meanwhile == "no database":
        world.go_away()
    else:
        await replica.done("schedule", "edit", "tick", "--label", "by=hand")
    terminal.type("y\n")
    assert await terminal.ended() == status
    if meanwhile == "another edit":
        assert world.schedule()["trigger"]["every_ms"] == 1_000
    kept = re.search(r"your text is in (\S+\.yaml)", "".join(terminal.shown.splitlines()))
    assert kept is not None
    assert "every: 2s" in taken(Path(kept[1]))


def taken(file: Path) -> str:
    text = file.read_text()
    file.unlink()
    return text


async def test_after_a_mistake_the_editor_opens_again_with_what_was_written(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    twice = "sed -i -e 's/every: 1ms/every: 3s/;t' -e 's/every: 1s/every: 1ms/'"
    terminal = editing(replica, twice, "--yes")
    await terminal.until("Edit again?")
    assert "trigger.every: " in terminal.shown
    terminal.type("y\n")
    assert await terminal.ended() == 0
    assert world.schedule()["trigger"]["every_ms"] == 3_000


@pytest.mark.parametrize("editor", spread(["no-such-editor", "false", "rm", "'"], check=1))
async def test_an_editor_that_fails_is_one_line_and_status_2(replica: Replica, editor: str) -> None:
    await replica.done(*_TICK)
    terminal = editing(replica, editor)
    assert await terminal.ended() == 2
    assert terminal.shown.startswith(f"hascheduler: EDITOR: {editor} failed")
    assert "Traceback" not in terminal.shown
