"""``hascheduler events`` against the real API: what is shown, where it goes on, how it ends."""

import asyncio
import json
from dataclasses import replace

import pytest

from hascheduler.cli.jobs import events as events_module
from hascheduler.client import JobEvent
from hascheduler.daemon.outbound.event_log import EventLog
from hascheduler.model.event import EventType, position
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.terminal import Terminal
from tests.unit.daemon.happenings import happened

SINCE = ("--after", position(10, 1))


@pytest.fixture
def log(world: World) -> EventLog:
    """That of the replica, which the world's services hold already."""
    log = world.events
    log.begin(position(10, 1))
    log.append(
        [
            happened(11, "job:1"),
            happened(12, "job:1", type=EventType.DISPATCHED, attempt=1, processor="p-1"),
            happened(13, "job:1", type=EventType.RETURNED, attempt=1, processor="p-1", failures=1, retry_at_ms=15_000),
            happened(14, "job:[2]", type=EventType.REPRIORITIZED, priority=9),
        ],
        position(14, 1),
    )
    return log


async def test_each_event_is_a_line_with_what_it_says(replica: Replica, log: EventLog) -> None:
    ended = await replica.done("events", "--no-follow", *SINCE, COLUMNS="40")
    assert ended.out.splitlines() == [
        "00:00:11.000Z submitted        job:1  log",
        "00:00:12.000Z dispatched       job:1  log  attempt 1 at p-1",
        "00:00:13.000Z returned         job:1  log  attempt 1 at p-1  1 failed  again at 00:00:15.000Z",
        "00:00:14.000Z reprioritized    job:[2]  log  priority 9",
    ]


async def test_as_json_each_line_is_an_event(replica: Replica, log: EventLog) -> None:
    ended = await replica.done("events", "--no-follow", "--json", *SINCE, "--type", "returned")
    [event] = [json.loads(line) for line in ended.out.splitlines()]
    assert (event["type"], event["retry_at"]) == ("returned", "1970-01-01T00:00:15.000Z")


async def test_only_what_is_asked_for_is_shown(replica: Replica, log: EventLog) -> None:
    ended = await replica.done("events", "--no-follow", *SINCE, "--job", "job:[2]", "--definition", "log")
    assert [line.split()[1] for line in ended.out.splitlines()] == ["reprioritized"]
    assert (await replica.done("events", "--no-follow", *SINCE, "--schedule", "tick", "--tenant", "tenant")).out == ""


async def test_what_a_schedule_missed_is_a_line_and_an_event(replica: Replica, log: EventLog) -> None:
    tick = happened(20, None, type=EventType.SCHEDULE_MISSED, schedule="tick", nominal_ms=1_000)
    tock = replace(tick, id=position(21, 1), schedule="tock", count=1, through_ms=1_000)
    log.append([replace(tick, count=3, through_ms=3_000), tock], position(21, 1))
    only, first = ("events", "--no-follow", *SINCE, "--type", "schedule.missed"), "1970-01-01 01:00:01 CET"
    assert (await replica.done(*only, TZ="Europe/Paris")).out.splitlines() == [
        f"01:00:20.000 CET schedule.missed  tick  log  3 times missed: {first} – 1970-01-01 01:00:03 CET",
        f"01:00:20.000 CET schedule.missed  tock  log  1 time missed: {first}",
    ]
    [line] = (await replica.done(*only, "--json", "--schedule", "tick")).out.splitlines()
    event = json.loads(line)
    assert (event["job"], event["schedule"], event["count"]) == (None, "tick", 3)
    assert (event["nominal_at"], event["through_at"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:03.000Z")


async def test_missed_events_are_reported_on_standard_error(replica: Replica, log: EventLog) -> None:
    ended = await replica.done("events", "--no-follow", "--json", "--after", position(1, 1))
    assert (ended.out, "list the jobs again" in ended.err) == ("", True)


async def test_ctrl_c_ends_it_as_it_should(url: str, log: EventLog) -> None:
    terminal = Terminal("events", *SINCE, HASCHEDULER_URL=url)
    await terminal.until("reprioritized")
    log.append([happened(15, "job:3", type=EventType.FAILED)], position(15, 1))
    await terminal.until("job:3")
    assert await terminal.interrupted() == 0
    assert "\x1b[1;31mfailed" in terminal.shown


async def test_a_stream_that_ends_is_taken_up_again_after_the_last_event(
    replica: Replica, log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "_AGAIN_S", 0.01)
    shown: list[str | None] = []

    def show(said: JobEvent, *, as_json: bool) -> None:
        shown.append(said.id)
        if len(shown) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(events_module, "_show", show)
    following = asyncio.create_task(replica.run("events", *SINCE))
    async with asyncio.timeout(20):
        for second in (15, 16):
            while len(shown) < second - 11:  # noqa: ASYNC110  # what changes knows nothing of those who wait
                await asyncio.sleep(0.01)
            # The token of the stream is asked for at each turn: here it ends, as after an hour.
            with monkeypatch.context() as over:
                over.setattr("hascheduler.api.ops.events.EVENTS_S_MAX", 0)
                log.append([happened(second)], position(second, 1))
                await asyncio.sleep(0.05)
        assert (await following).status == 0
    assert shown == [position(second, 1) for second in range(11, 17)]
