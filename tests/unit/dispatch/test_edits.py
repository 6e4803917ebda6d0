"""What edits and resets make of a schedule's times, and what it has to decide next."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import Fire, RecordVerdict, ResetCursor, TimeOutcome
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.edits import reset_cursor, with_trigger
from hascheduler.errors import Conflict
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.schema.schedule import PAST_MAX, SchedulePolicy, ScheduleRef, TriggerPeriod
from hascheduler.schema.trigger import Cron, Interval, Once, Trigger
from tests.unit.dispatch.database import SCHEDULES, Database
from tests.unit.dispatch.leadership import Leadership, Luck
from tests.unit.dispatch.nouns import fire, make_schedule, wall

SECOND, MINUTE = Trigger(Interval(1_000, wall(0))), Trigger(Interval(60_000, wall(0)))


def test_the_same_trigger_is_no_edit() -> None:
    schedule = make_schedule("s", trigger=SECOND)
    assert with_trigger(schedule, SECOND, wall(2_500)) == schedule


def test_edits_that_no_leader_can_keep_up_with_are_refused() -> None:
    schedule = make_schedule("s", trigger=SECOND)

    def edited(schedule: ScheduleRef, number: int) -> ScheduleRef:
        return with_trigger(schedule, SECOND if number % 2 else Trigger(Interval(500, wall(0))), wall(number * 2_000))

    for number in range(1, PAST_MAX + 1):
        schedule = edited(schedule, number * 2) if number % 2 else edited(schedule, number * 2 + 1)
    with pytest.raises(Conflict, match="edits are waiting"):
        with_trigger(schedule, Trigger(Once(wall(10**9))), wall(10**8))


def fires_of(*spans_ms: int, schedule: str = "s") -> list[Fire]:
    return [fire(schedule, wall(span_ms)) for span_ms in spans_ms]


def take_due(fires: DueTimes, span_ms: int, limit: int = 10) -> list[TimeOutcome]:
    return [conclusion for of_one in fires.take_due(wall(span_ms), limit, lambda _: {}) for conclusion in of_one]


def test_a_trigger_that_was_broken_by_hand_never_fires_and_holds_up_no_other() -> None:
    broken = Trigger(Cron("nonsense"))
    fires = DueTimes()
    fires.seen(make_schedule("a", trigger=broken))
    fires.seen(make_schedule("b", past=(TriggerPeriod(broken, wall(1_500), wall(9_000)),)))
    fires.seen(make_schedule("s"))
    assert take_due(fires, 1_000) == fires_of(1_000)
    assert sorted(fires.unreadable) == ["a", "b"]
    fires.seen(make_schedule("a", rev=2, cursor_ms=wall(1_000)))
    fires.gone("b")
    assert fires.unreadable == {}
    assert take_due(fires, 2_000) == [*fires_of(2_000, schedule="a"), *fires_of(2_000)]


EACH_SECOND = Trigger(Interval(1_000, WallMs(0)))
AHEAD_MS = 10_800_000
LUCKS = [luck for luck in Luck if luck is not Luck.ROLLED_BACK]


def run(first: int, last: int, verdict: Verdict = Verdict.COALESCED) -> VerdictRun:
    """Each second from ``first`` through ``last``."""
    return VerdictRun("s", verdict, wall(first * 1_000), wall(last * 1_000), last - first + 1)


def ahead(cursor: int, at: int = 10, **only_what_matters: Any) -> ScheduleRef:
    """Its cursor is at that second, and it is to be reset to ``at``."""
    plain = make_schedule("s", cursor_ms=wall(cursor * 1_000), reset_at_ms=wall(at * 1_000))
    return replace(plain, **only_what_matters)


@pytest.mark.parametrize(
    ("schedule", "runs", "free_through", "left"),
    [
        # The seconds 1 through 99 were passed over, 100 through 110 fired.
        pytest.param(ahead(110), [run(1, 99)], 99, [run(1, 10)], id="passed over in one go"),
        pytest.param(ahead(110), [run(11, 99)], 99, [None], id="from the reset on"),
        pytest.param(ahead(110), [run(1, 40), run(41, 99, Verdict.MISSED)], 99, [run(1, 10), None], id="two verdicts"),
        pytest.param(ahead(110), [run(1, 99), run(105, 106)], 99, [run(1, 10)], id="later ones keep theirs"),
        pytest.param(ahead(110), [run(1, 110)], 110, [run(1, 10)], id="nothing fired"),
        pytest.param(ahead(110), [], 10, [], id="all fired"),
        pytest.param(ahead(110), [run(20, 99)], 10, [], id="the first time fired"),
        pytest.param(
            ahead(110, created_at_ms=wall(100_000), since_ms=wall(100_000)), [], 100, [], id="created ahead, and fired"
        ),
        pytest.param(
            ahead(100, created_at_ms=wall(100_000), since_ms=wall(100_000)), [], 100, [], id="created ahead alone"
        ),
    ],
)
def test_what_has_not_fired_is_decided_again_and_what_may_have_fired_is_not(
    schedule: ScheduleRef, runs: list[VerdictRun], free_through: int, left: list[VerdictRun | None]
) -> None:
    done = reset_cursor(schedule, runs)
    after, cursor_ms = done.schedule, schedule.cursor_ms
    assert (after.cursor_ms, after.reset_at_ms) == (wall(10_000), None)
    assert [kept for _, kept in done.withdrawn] == left
    free_ms = wall(free_through * 1_000)
    if free_ms == cursor_ms:
        assert (after.since_ms, after.past) == (wall(10_000), ())
    else:
        assert after.since_ms == cursor_ms
        assert after.past == ((TriggerPeriod(EACH_SECOND, wall(10_000), free_ms),) if free_through > 10 else ())


@pytest.mark.parametrize(
    "schedule", [ahead(10), ahead(9), ahead(110, paused_at_ms=wall(5_000)), replace(ahead(110), reset_at_ms=None)]
)
def test_a_reset_that_has_nothing_to_do_changes_nothing_but_its_request(schedule: ScheduleRef) -> None:
    done = reset_cursor(schedule, [run(1, 99)])
    assert (done.schedule, list(done.withdrawn)) == (replace(schedule, reset_at_ms=None), [])


class Story:
    """A leader, its database and one schedule, whose clock goes on a second at a time."""

    def __init__(self, schedule: ScheduleRef) -> None:
        self.database = Database()
        self.database.put_schedule(schedule)
        self.leadership = Leadership(self.database, lambda _: None)
        self.decided: list[Fire | RecordVerdict | ResetCursor] = []
        self.lead(schedule.cursor_ms)

    def lead(self, now: WallMs) -> None:
        self.leadership.take_over(now)
        self.leadership.deliver(10_000)
        self.leadership.begin()

    def second(self, now: WallMs, luck: Luck = Luck.GOOD) -> None:
        """Whatever is decided is carried out, with that luck, and seen."""
        for _ in range(4):
            self.leadership.step(now)
            while self.leadership.term is not None and self.leadership.term.to_journal:
                self.leadership.write_journal()
            while self.leadership.term is not None and self.leadership.term.to_apply:
                self.leadership.carry_out(now, luck)
            self.leadership.deliver(10_000)
            self.leadership.fetch()

    def ask_for_reset(self, now: WallMs) -> None:
        stored = self.database.documents[SCHEDULES]["s"]
        self.database._patch(SCHEDULES, "s", reset_at_ms=now, rev=stored["rev"] + 1)
        self.leadership.deliver(10_000)

    def verdicts(self) -> Counter[int]:
        """By second: how many verdicts it has."""
        fired = [job["nominal_ms"] for job in self.database.jobs.values()]
        passed = [
            at for each in self.database.passed_over.values() for at in range(each.first_ms, each.last_ms + 1, 1_000)
        ]
        return Counter((at - wall(0)) // 1_000 for at in [*fired, *passed])


@pytest.mark.parametrize("luck", LUCKS)
@pytest.mark.parametrize("takes_over", [False, True])
def test_after_a_reset_fires_go_on_and_each_time_has_one_verdict(luck: Luck, takes_over: bool) -> None:
    story = Story(make_schedule("s", policy=SchedulePolicy(grace_ms=500)))
    ahead = AHEAD_MS // 1_000
    for second in range(1, 6):
        story.second(wall((ahead + second) * 1_000))
    cursor_ms = story.database.documents[SCHEDULES]["s"]["cursor_ms"]
    assert cursor_ms == wall((ahead + 5) * 1_000)
    # Now the clock is put right, and nothing fires.
    for second in range(6, 9):
        story.second(wall(second * 1_000))
    assert story.database.documents[SCHEDULES]["s"]["cursor_ms"] == cursor_ms
    story.ask_for_reset(wall(8_000))
    story.second(wall(8_000), luck)
    if takes_over:
        story.leadership.crash(0)
        story.lead(wall(8_500))
    for second in range(9, 15):
        story.second(wall((second if luck is Luck.GOOD else second + 60) * 1_000))
    fired = {(job["nominal_ms"] - wall(0)) // 1_000 for job in story.database.jobs.values()}
    assert fired >= ({*range(9, 15)} if luck is Luck.GOOD else {*range(69, 75)})
    # Up to what was decided too early, which stays as it is, and beyond.
    for second in range(ahead - 2, ahead + 9):
        story.second(wall(second * 1_000))
    verdicts = story.verdicts()
    assert set(verdicts) == {*range(1, ahead + 9)}
    assert set(verdicts.values()) == {1}
