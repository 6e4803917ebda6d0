"""What the check reads of heartbeats, and of nominal times that leaders with other time-zone data decided."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from hascheduler.check.finding import FindingKind
from hascheduler.check.schedules import VerdictCursor, check_times, decided_times
from hascheduler.dispatch.decisions import Fire, RecordVerdict, TimeOutcome
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import VerdictRun
from hascheduler.schema.noun import document_of, read_document
from hascheduler.schema.replica import LastCheck, ReplicaStatus
from hascheduler.schema.schedule import CatchUp
from hascheduler.schema.trigger import Cron, Single
from tests.factories import make_replica
from tests.unit.dispatch.test_zone_data_differ import DAILY, RULES, TWICE, ZONE, at, led, schedule_of
from tests.zone_data import other_zone_data

# Heartbeats


MARKS = (("one.ab12/4", "00ff"), ("two.cd=e/8", "ffee"))


def test_a_heartbeat_of_an_older_release_has_no_marks_and_no_last_check() -> None:
    stored = document_of(make_replica(marks=MARKS, last_check=LastCheck(WallMs(5))))
    del stored["marks"], stored["audited"]
    assert read_document(ReplicaStatus, stored["_id"], stored) == make_replica()


@pytest.mark.parametrize(
    "nonsense", [None, 5, [], {}, "", " ", "a", "=", "a=b=c d", "at=", "at=x", "at=1 x", "at=-1", "at=" + "9" * 99]
)
def test_malformed_marks_or_checks_do_not_make_a_heartbeat_unreadable(nonsense: Any) -> None:
    stored = document_of(make_replica()) | {"marks": nonsense, "audited": nonsense}
    status = read_document(ReplicaStatus, stored["_id"], stored)
    assert status.id == "r1"
    assert all(isinstance(text, str) for mark in status.marks for text in mark)
    assert status.last_check in (None, LastCheck(WallMs(1)))


# Nominal times


async def _each(found: Sequence[int] | Sequence[VerdictRun]) -> AsyncIterator[object]:
    for one in found:
        yield one


async def missing(parts: Sequence[Single], leaders: str, checked_by: str, *, catch_up: CatchUp, lost: int = 0) -> int:
    """How many times lack a verdict by those data, after ``leaders`` decided them and some fires were ``lost``."""
    schedule, outcomes = schedule_of(*parts, catch_up=catch_up), list[TimeOutcome]()
    words = leaders.split()
    for data, until in zip(words[::2], words[1::2], strict=True):
        schedule, decided = led(schedule, data, at(until))
        outcomes += decided
    fires = [each.nominal_ms for each in outcomes if isinstance(each, Fire)][: -lost or None]
    runs = [each.run for each in outcomes if isinstance(each, RecordVerdict)]

    async def pause() -> None:
        return

    with other_zone_data(RULES[checked_by]):
        times = decided_times(schedule, 0, schedule.cursor_ms, 10_000)
        verdicts = VerdictCursor(_each(fires), _each(runs))  # type: ignore[arg-type]
        findings = await check_times(schedule, times, verdicts, pause)
    counted = [each.what.partition(" ")[0] for each in findings if each.kind is FindingKind.VERDICT_MISSING]
    assert not any(each.kind is FindingKind.VERDICT_DOUBLED for each in findings)
    return sum(map(int, counted))


HISTORIES = [
    ([DAILY], "new 08T16:30 old 12T17:30"),
    ([DAILY], "old 08T17:30 new 12T17:30"),
    ([DAILY], "new 04T16:30 old 05T17:30 new 06T16:30 old 07T17:30 new 08T16:30 old 09T17:30"),
    ([TWICE], "old 04T17:30 new 05T20:00 old 06T17:30 new 08T00:00"),
    ([Cron("*/20 7-18 * * *", ZONE)], "old 05T17:25 new 07T20:05 old 09T17:30"),
]


@pytest.mark.parametrize("checked_by", ["new", "old"])
@pytest.mark.parametrize("catch_up", [CatchUp.ALL, CatchUp.LATEST])
@pytest.mark.parametrize(("parts", "leaders"), HISTORIES)
async def test_a_time_that_other_data_moved_is_not_missing(
    parts: Sequence[Single], leaders: str, catch_up: CatchUp, checked_by: str
) -> None:
    assert await missing(parts, leaders, checked_by, catch_up=catch_up) == 0


@pytest.mark.parametrize("checked_by", ["new", "old"])
@pytest.mark.parametrize(("parts", "leaders"), HISTORIES)
async def test_a_time_that_nobody_decided_is_missing(parts: Sequence[Single], leaders: str, checked_by: str) -> None:
    found = await missing(parts, leaders, checked_by, catch_up=CatchUp.ALL, lost=3)
    assert 1 <= found <= 3


async def test_where_the_data_were_the_same_each_lost_time_is_missing() -> None:
    assert await missing([DAILY], "new 12T00:00", "new", catch_up=CatchUp.ALL, lost=3) == 3
