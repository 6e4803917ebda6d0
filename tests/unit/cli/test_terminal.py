"""What a person at a terminal sees, is asked and edits; commands that wait, go on, or read several pages."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from hascheduler.cli.jobs import events as events_module
from hascheduler.client import JobEvent, requests
from hascheduler.daemon.outbound import waiters
from hascheduler.model.collection import Collection
from hascheduler.model.event import position
from hascheduler.ports import JobPage, JobSelection, ListPosition
from tests.tiers import spread
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.terminal import Terminal
from tests.unit.daemon.happenings import happened

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


# Waiting and reading on

ID = "job:0001"


async def test_a_replica_that_holds_no_request_back_is_asked_again(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "WAITERS_MAX", 0)
    await replica.done("job", "submit", "log")
    waiting = asyncio.create_task(replica.done("job", "wait", ID))
    world.rewrite(Collection.JOBS, ID, state="succeeded", finished_at_ms=NOW)
    assert (await waiting).out == f"{ID} succeeded\n"


async def test_a_list_goes_on_until_it_has_as_many_as_are_wanted(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await replica.done("job", "submit", "log")
    lists = world.jobs.list

    async def one_at_most(which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        page = await lists(which, after, 1)
        if after is None:
            return JobPage([], ListPosition(NOW))  # where few match a page may be empty, and have a next one
        return page

    monkeypatch.setattr(world.jobs, "list", one_at_most)
    for limit, expected in (("2", "job:0003\njob:0002\n"), ("20", "job:0003\njob:0002\njob:0001\n")):
        assert (await replica.done("job", "list", "--limit", limit, "-o", "name")).out == expected


async def test_all_pages_of_schedules_are_shown(replica: Replica, world: World) -> None:
    await replica.done("schedule", "add", "tick", "--every", "1s", "--definition", "log")
    for number in range(201):
        world.database.replace(Collection.SCHEDULES, {**world.schedule(), "_id": f"s{number:03d}"})
    listed = (await replica.done("schedule", "list", "-o", "name")).out.splitlines()
    assert listed == [*(f"s{number:03d}" for number in range(201)), "tick"]


async def test_ctrl_c_says_how_many_are_changed_and_how_to_go_on(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tick", "tock", "tack"):
        await replica.done("schedule", "add", name, "--every", "1h", "--definition", "log")
    monkeypatch.setattr("hascheduler.api.schedules.all_that_match.CHANGED_MAX", 1)
    asked: list[object] = []

    def interrupted(*arguments: Any, **more: Any) -> Any:
        asked.append(more)
        if len(asked) == 4:  # after the count and two parts
            raise KeyboardInterrupt
        return ask(*arguments, **more)

    ask = requests.asked
    monkeypatch.setattr(requests, "asked", interrupted)
    trigger = ("schedule", "trigger", "--all", "--yes", "--json")
    ended = await replica.run(*trigger)
    assert (ended.status, ended.json["changed"], ended.json["complete"]) == (130, 2, False)
    _, _, key = ended.err.strip().rpartition(" ")
    assert ended.err.endswith(f"to continue, run the command with --idempotency-key {key}\n")
    rest: Any = (await replica.done(*trigger, "--idempotency-key", key)).json
    assert (rest["changed"], rest["complete"]) == (1, True)
    assert sorted(job["schedule"] for job in world.everything()["jobs"]) == ["tack", "tick", "tock"]


async def test_a_stream_that_ends_is_taken_up_again_after_the_last_event(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = world.events
    log.begin(position(10, 1))
    log.append([happened(11)], position(11, 1))
    monkeypatch.setattr(events_module, "_AGAIN_S", 0.01)
    shown: list[str | None] = []

    def show(said: JobEvent, *, as_json: bool) -> None:
        shown.append(said.id)
        if len(shown) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(events_module, "_show", show)
    following = asyncio.create_task(replica.run("events", "--after", position(10, 1)))
    async with asyncio.timeout(20):
        for second in (12, 13):
            while len(shown) < second - 11:  # noqa: ASYNC110  # what changes knows nothing of those who wait
                await asyncio.sleep(0.01)
            # The token of the stream is asked for at each turn: here it ends, as after an hour.
            with monkeypatch.context() as over:
                over.setattr("hascheduler.api.ops.events.EVENTS_S_MAX", 0)
                log.append([happened(second)], position(second, 1))
                await asyncio.sleep(0.05)
        assert (await following).status == 0
    assert shown == [position(second, 1) for second in range(11, 14)]


async def test_a_batch_is_waited_for_and_the_worst_end_decides_the_status(replica: Replica, world: World) -> None:
    jobs = '{"definition": "log"}\n{"definition": "log"}\n'
    late = await replica.run("job", "batch", "-", "--wait", "0s", "-o", "json", input=jobs)
    assert late.status == 5
    answer: Any = late.json
    assert answer["counts"]["pending"] == 2
    [batch], ids = answer["batches"], [result["job"] for result in answer["results"]]
    for id, state in zip(ids, ("succeeded", "failed"), strict=True):
        world.rewrite(Collection.JOBS, id, state=state)
    ended = await replica.run("job", "wait", batch, ids[0])
    assert (ended.status, ended.out) == (3, "2 succeeded, 1 failed\n")


async def test_ctrl_c_names_the_job_that_goes_on(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hascheduler.cli.jobs.submit.time.sleep", interrupted)
    monkeypatch.setattr(waiters, "WAITERS_MAX", 0)
    ended = await replica.run("job", "submit", "log", "--wait", "1h")
    assert ended.status == 130
    assert ended.err == "hascheduler: job:0001 goes on; wait again with hascheduler job wait job:0001\n"
