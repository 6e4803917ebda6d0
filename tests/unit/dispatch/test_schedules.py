"""Schedules: jobs that must not run beside each other, fires that make graphs, edits, resets, and what is due."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    Cancel,
    CountFailures,
    Dispatch,
    Fire,
    RecordVerdict,
    ResetCursor,
    Settlement,
    TimeOutcome,
)
from hascheduler.dispatch.inputs import Settled, TermBegan
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.dispatch.schedules.edits import reset_cursor, with_trigger
from hascheduler.errors import Conflict
from hascheduler.mirror.changes import JobGone, JobSeen, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job, graph_job_ids
from hascheduler.model.job import JobRef, JobState, backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.schedule import (
    PAST_MAX,
    GraphJob,
    JobGraph,
    Overlap,
    SchedulePolicy,
    ScheduleRef,
    TriggerPeriod,
    graph_order,
)
from hascheduler.schema.trigger import Cron, Interval, Once, Trigger
from tests.unit.dispatch.database import SCHEDULES, Database
from tests.unit.dispatch.leadership import Leadership, Luck
from tests.unit.dispatch.nouns import dispatched, fire, make_job, make_schedule, running, wall
from tests.unit.dispatch.scene import Scene, processors

FIRST, SECOND, THIRD = (fire_job_id("s", wall(second * 1_000)) for second in (1, 2, 3))


def scene_with(overlap: Overlap, pause_after_failures: int | None = None, grace_ms: int = 60_000) -> Scene:
    policy = SchedulePolicy(grace_ms=grace_ms, overlap=overlap, pause_after_failures=pause_after_failures)
    schedule = make_schedule("s", policy=policy)
    return Scene(ScheduleSeen(schedule), *processors("p", slots=8))


def kinds(decisions: object) -> list[str]:
    assert isinstance(decisions, tuple)
    return [type(decision).__name__ for decision in decisions]


def shown(job_id: str) -> JobSeen:
    return JobSeen(make_job(job_id, serial=True, schedule_created_at_ms=wall(0)))


@pytest.mark.parametrize(("overlap", "fires"), [(Overlap.SKIP, 1), (Overlap.BUFFER_ONE, 2)])
def test_a_long_backlog_that_is_taken_in_portions_overlaps_no_more_than_a_short_one(
    overlap: Overlap, fires: int
) -> None:
    decisions = list(scene_with(overlap, grace_ms=10**6).at(250_000).decisions)
    assert [type(decision) for decision in decisions].count(Fire) == fires
    passed_over = [decision.run.count for decision in decisions if isinstance(decision, RecordVerdict)]
    assert sum(passed_over) == 250 - fires


@pytest.mark.parametrize("overlap", list(Overlap))
def test_a_new_leader_overlaps_nothing_with_a_job_that_its_predecessor_made_and_the_stream_has_yet_to_show(
    overlap: Overlap,
) -> None:
    """Its predecessor stood still for longer than the schedule's interval, right after it had decided."""
    policy = SchedulePolicy(grace_ms=60_000, overlap=overlap)
    schedule = make_schedule("s", policy=policy)
    fired = Fire("s", wall(1_000), schedule.basis_at(wall(0)), FireCounts(1))
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=8), leading=False)
    step = scene.at(3_100, TermBegan(2, (fired,)))
    if overlap is Overlap.ALLOW:
        assert kinds(step.decisions) == ["Fire", "Fire", "Dispatch", "Dispatch"]
        return
    assert step.decisions == ()
    knowing = Scene(ScheduleSeen(schedule), *processors("p", slots=8), shown(FIRST), leading=False)
    assert knowing.at(3_100, TermBegan(2, (fired,))).decisions != ()
    step = scene.at(3_200, shown(FIRST), ScheduleSeen(replace(schedule, cursor_ms=wall(1_000), tally=FireCounts(1))))
    verdicts = [decision.run for decision in step.decisions if isinstance(decision, RecordVerdict)]
    fires = [decision.job_id for decision in step.decisions if isinstance(decision, Fire)]
    if overlap is Overlap.SKIP:
        assert [(run.count, run.because_of) for run in verdicts] == [(2, FIRST)]
    elif overlap is Overlap.BUFFER_ONE:
        assert (fires, [run.count for run in verdicts]) == ([SECOND], [1])
    else:
        assert fires == [SECOND, THIRD]


def test_a_promised_attempt_is_cancelled_when_it_has_been_seen() -> None:
    scene = scene_with(Overlap.CANCEL_RUNNING)
    assert kinds(scene.at(1_000).decisions) == ["Fire", "Dispatch"]
    assert kinds(scene.at(2_000).decisions) == ["Fire"]
    step = scene.at(2_100, JobSeen(dispatched(FIRST, "p", serial=True)))
    assert step.decisions == (Cancel(FIRST, 1, f"replaced by {SECOND}"),)


def ended(scene: Scene, at_ms: int, *states: JobState) -> tuple[object, ...]:
    facts: list[JobSeen | JobGone] = []
    for number, state in enumerate(states):
        id = backfill_job_id("s", wall(at_ms + number))
        facts += [JobSeen(running(id, "p")), JobGone(id, state)]
    return scene.at(at_ms, *facts).decisions


def test_failures_in_a_row_are_written_down_and_too_many_pause_the_schedule() -> None:
    scene = scene_with(Overlap.ALLOW, pause_after_failures=3)
    failed = JobState.FAILED
    assert ended(scene, 100, failed) == (CountFailures("s", 1, 1),)
    policy = SchedulePolicy(pause_after_failures=3)
    scene.at(110, ScheduleSeen(make_schedule("s", policy=policy, failures=1)))
    assert ended(scene, 120, JobState.CANCELLED) == ()
    assert ended(scene, 130, failed, failed) == (CountFailures("s", 1, 3, wall(130)),)


def test_failures_of_a_schedule_that_they_do_not_pause_are_written_down_each_ten_seconds() -> None:
    scene = scene_with(Overlap.ALLOW)
    failed, succeeded = JobState.FAILED, JobState.SUCCEEDED

    def seen(failures: int, rev: int = 1) -> ScheduleSeen:
        return ScheduleSeen(make_schedule("s", rev=rev, failures=failures, paused_at_ms=wall(0)))

    scene.at(50, seen(0))
    assert ended(scene, 100, failed, failed) == (CountFailures("s", 1, 2),)
    assert scene.at(150, seen(2)).wake_at_ms == wall(10_100)
    assert ended(scene, 200, failed) == ()
    assert ended(scene, 9_000, succeeded) == ()
    assert scene.at(9_500, seen(2, rev=2)).decisions == ()  # an edit of something else
    assert scene.at(10_100).decisions == (CountFailures("s", 2, 0),)
    assert ended(scene, 10_200, failed) == ()  # before the stream has shown the last one
    assert scene.at(10_300, seen(0, rev=2)).decisions == ()
    assert scene.at(20_100).decisions == (CountFailures("s", 2, 1),)
    assert scene.at(40_000, seen(1, rev=2)).decisions == ()
    assert ended(scene, 40_100, succeeded) == (CountFailures("s", 2, 0),)


def test_a_new_leader_writes_down_the_failures_that_the_last_one_has_not() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", paused_at_ms=wall(0))), *processors("p"), leading=False)
    assert ended(scene, 100, JobState.FAILED) == ()
    assert scene.at(200, TermBegan(1)).decisions == (CountFailures("s", 1, 1),)


def test_a_thousand_schedules_that_fail_at_once_are_written_down_some_in_a_step() -> None:
    names = [f"s{number}" for number in range(1_000)]
    scene = Scene(*(ScheduleSeen(make_schedule(name, paused_at_ms=wall(0))) for name in names))
    ids = [backfill_job_id(name, wall(0)) for name in names]
    gone = [fact for id in ids for fact in (JobSeen(running(id, "p")), JobGone(id, JobState.FAILED))]
    steps, step = [], scene.at(100, *gone)
    while step.wake_at_ms == wall(100):
        steps.append(step)
        step = scene.at(100)
    assert max(len(each.decisions) for each in steps) == 20
    assert sum(len(each.decisions) for each in [*steps, step]) == 1_000


def graph(overlap: Overlap, **more: Any) -> ScheduleRef:
    """``a`` and ``b`` may run beside each other, and ``c`` is the last."""
    policy = SchedulePolicy(grace_ms=60_000, overlap=overlap)
    plain = make_schedule("s", **{"policy": policy, **more})
    needs: dict[str, tuple[str, ...]] = {"a": (), "b": (), "c": ("a", "b")}
    jobs = tuple(GraphJob(ref, refs, plain.template) for ref, refs in needs.items())
    return replace(plain, graph=JobGraph(jobs, graph_order(list(needs.items()))))


def inserted(schedule: ScheduleRef, fire: Fire | WallMs) -> list[JobSeen]:
    """What the stream shows of a fire's jobs, the last at the end."""
    nominal_ms, after = (fire.nominal_ms, fire.after) if isinstance(fire, Fire) else (fire, ())
    last = fired_job(schedule, nominal_ms)
    assert schedule.graph is not None
    ids = graph_job_ids(schedule.graph, last.id)
    made: dict[str, Any] = {
        "schedule_created_at_ms": wall(0),
        "submitted_at_ms": nominal_ms,
        "waits_for": after,
        "ignores_failures": bool(after),
    }
    return [*(JobSeen(make_job(ids[ref], **made)) for ref in ("a", "b")), JobSeen(last)]


def advanced(schedule: ScheduleRef, fire: Fire) -> ScheduleSeen:
    return ScheduleSeen(replace(schedule, cursor_ms=fire.nominal_ms, tally=fire.tally))


def fires(decisions: object) -> list[Fire]:
    assert isinstance(decisions, tuple)
    return [each for each in decisions if isinstance(each, Fire)]


def part(last_id: str, ref: str) -> str:
    return graph_job_id(last_id, ref)


def has_run(id: str, **more: Any) -> JobRef:
    return running(id, "p", schedule_created_at_ms=wall(0), **more)


def test_a_later_graph_replaces_every_job_of_the_earlier_one_those_that_wait_first() -> None:
    schedule = graph(Overlap.CANCEL_RUNNING)
    scene = Scene(ScheduleSeen(schedule), *processors("p", slots=9))
    [first] = fires(scene.at(1_000).decisions)
    scene.at(1_100, *inserted(schedule, first), advanced(schedule, first))
    scene.at(1_200, *(JobSeen(has_run(part(FIRST, ref))) for ref in "ab"))
    step = scene.at(2_000)
    [second] = fires(step.decisions)
    why = f"replaced by {SECOND}"
    expected = [Cancel(FIRST, 0, why), Cancel(part(FIRST, "b"), 1, why), Cancel(part(FIRST, "a"), 1, why)]
    assert list(step.decisions[1:]) == expected
    assert scene.at(2_100, *inserted(schedule, second), advanced(schedule, second)).decisions == ()
    assert scene.at(2_200, *(JobGone(id, JobState.CANCELLED) for id in (FIRST, part(FIRST, "a")))).decisions == ()
    freed = scene.at(2_300, JobGone(part(FIRST, "b"), JobState.CANCELLED))
    assert freed.decisions == (Dispatch(part(SECOND, "a"), 1, "p"), Dispatch(part(SECOND, "b"), 1, "p"))


def test_of_too_many_in_the_way_those_at_a_processor_come_first_and_then_the_newest() -> None:
    schedule = graph(Overlap.CANCEL_RUNNING)
    by_hand = [trigger_job_id("s", f"{number:03}") for number in range(150)]
    waiting: dict[str, Any] = {"schedule_created_at_ms": wall(0), "not_before_ms": wall(10**6)}
    others = [JobSeen(make_job(id, **waiting)) for id in by_hand]
    others[7] = JobSeen(has_run(by_hand[7]))
    scene = Scene(ScheduleSeen(schedule), *others, *processors("p", slots=9))
    [fire] = fires(scene.at(1_000).decisions)
    assert fire.after == (by_hand[7], *reversed(by_hand[51:]))


def test_after_an_edit_nothing_is_decided_until_what_is_promised_is_known() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")))
    [first] = scene.at(1_000).decisions
    assert isinstance(first, Fire)
    edited = make_schedule("s", rev=2, since_ms=wall(1_000))
    assert scene.at(2_000, ScheduleSeen(edited)).decisions == ()
    step = scene.at(2_100, Settled(first, Settlement.LOST))
    assert [decision.nominal_ms for decision in step.decisions if isinstance(decision, Fire)] == [wall(2_000)]


EACH_SECOND = Trigger(Interval(1_000, WallMs(0)))


def test_the_same_trigger_is_no_edit() -> None:
    schedule = make_schedule("s", trigger=EACH_SECOND)
    assert with_trigger(schedule, EACH_SECOND, wall(2_500)) == schedule


def test_edits_that_no_leader_can_keep_up_with_are_refused() -> None:
    schedule = make_schedule("s", trigger=EACH_SECOND)

    def edited(schedule: ScheduleRef, number: int) -> ScheduleRef:
        return with_trigger(
            schedule, EACH_SECOND if number % 2 else Trigger(Interval(500, wall(0))), wall(number * 2_000)
        )

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
