"""A takeover, followed by its transitions. Time moves only between two of them."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.daemon.leadership.failover_tracker import BEHIND_MAX_MS, FailoverTracker
from hascheduler.dispatch.decisions import Decision, Dispatch, RecordVerdict, Requeue, Settlement
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.dispatch.step import Step
from hascheduler.model.failover import NO_BACKLOG, Backlog, Cause, Failover, FailoverEnd
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.schedule import Basis
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from tests.factories import make_fire, make_lease
from tests.unit.daemon.doubles import HandClock

ME = "r2"


class Tracked:
    """A tracker whose clock stands at ``at(…)`` ms, and what it reported."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.t0 = self.clock.now
        self.failovers: list[Failover] = []
        self.tracker = FailoverTracker(
            "default", ME, self.clock, self.failovers.append, lambda fire: fire.nominal_ms - NOW + self.t0
        )

    def at(self, ms: int) -> FailoverTracker:
        self.clock.now = self.t0 + ms
        return self.tracker

    def took_over(self, ms: int, term: int = 2, seq: int = 10, *, deciding: bool = True) -> None:
        """From winning to deciding, 10 ms each."""
        self.at(ms).won(term)
        self.at(ms + 10).began(head(seq, term, ME, EntryKind.TERM_BEGAN))
        self.at(ms + 15).reapplied(term, 2, 5)
        self.at(ms + 17).journal_seen(head(seq, term, ME, EntryKind.TERM_BEGAN), live=True)
        if deciding:
            self.at(ms + 20).deciding(term)

    def stepped(self, ms: int, *decisions: Decision, began: bool = False, behind: bool = False) -> None:
        tracker = self.at(ms)
        now = self.clock.wall_ms()
        wake_at_ms = now if behind else WallMs(now + 100)
        tracker.stepped([TermBegan(2)] if began else [], Step(decisions, wake_at_ms=wake_at_ms), now)

    def carried_out(self, ms: int, *decisions: Decision, term: int = 2, answer: Settlement = Settlement.DONE) -> None:
        """In the journal, and 5 ms later applied."""
        self.at(ms).journaled(term)
        self.at(ms + 5).applied(term, [(decision, answer) for decision in decisions])

    @property
    def only(self) -> Failover:
        [failover] = self.failovers
        return failover

    def shown(self, failover: Failover) -> dict[str, int | None]:
        """Its instants, from the beginning on."""
        names = ("last_sign", "detected", "won", "began", "deciding", "first_decision", "first_dispatch", "told")
        found = {name: getattr(failover, f"{name}_at_ms") for name in names}
        return {name: None if at_ms is None else at_ms - self.t0 for name, at_ms in found.items()}


NOW = 1_893_456_000_000


def head(seq: int, term: int = 1, holder: str = "r1", kind: EntryKind = EntryKind.DECISIONS) -> JournalHead:
    return JournalHead("default", seq, term, kind, holder, seq - 1)


def passed_over(verdict: Verdict, last_ms: int, count: int) -> RecordVerdict:
    run = VerdictRun("tick", verdict, WallMs(0), WallMs(last_ms), count)
    return RecordVerdict(run, Basis(WallMs(0), WallMs(0)))


HELD = make_lease("r1", term=1)
RENEWED = replace(HELD, renewals=1)
FREE = replace(RENEWED, holder="", endpoint="", renewals=2)


@pytest.fixture
def tracked() -> Tracked:
    """Another leads in term 1, and showed life 100 ms ago."""
    tracked = Tracked()
    tracked.at(-500).lease_known(HELD, live=True)
    tracked.at(-400).journal_seen(head(8), live=True)
    tracked.at(-200).lease_known(RENEWED, live=True)
    tracked.at(-100).journal_seen(head(9), live=True)
    return tracked


def test_every_instant_is_the_one_of_its_transition(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(30).challenged(RENEWED)
    tracked.took_over(40)
    fire, dispatch = make_fire(0), Dispatch("a", 1, "p")
    tracked.stepped(70, fire, dispatch, began=True)
    tracked.carried_out(80, fire, dispatch)
    failover = tracked.only
    assert tracked.shown(failover) == {
        "last_sign": -100, "detected": 0, "won": 40, "began": 50, "deciding": 60, "first_decision": 80,
        "first_dispatch": 85, "told": 85,
    }  # fmt: skip
    assert (failover.shard, failover.term, failover.holder, failover.began_seq) == ("default", 2, ME, 10)
    assert (failover.previous_term, failover.previous_holder) == (1, "r1")
    assert (failover.cause, failover.ended) == (Cause.DIED, FailoverEnd.CAUGHT_UP)
    assert (failover.reapplied_entries, failover.reapplied_decisions) == (2, 5)
    assert failover.backlog == Backlog(fires_late=1, worst_lag_ms=85)
    assert (failover.detection_ms, failover.takeover_ms, failover.first_decision_ms) == (100, 60, 20)
    assert failover.gap_ms is None
    assert replace(failover, last_decision_at_ms=WallMs(tracked.t0 - 120)).gap_ms == 200


Event = tuple[str, Any]
SEEN_FREE: Event = ("lease", FREE)
SEEN_GONE: Event = ("lease", None)
SEEN_RENEWED: Event = ("lease", replace(HELD, renewals=2))
DIED: Event = ("died", "r1")


@pytest.mark.parametrize(
    ("events", "expected", "cause", "detected"),
    [
        ([], RENEWED, Cause.LAPSED, 100),
        ([SEEN_FREE], FREE, Cause.RELEASED, 0),
        ([SEEN_GONE], None, Cause.DELETED, 0),
        ([DIED], RENEWED, Cause.DIED, 0),
        ([("died", "somebody else")], RENEWED, Cause.LAPSED, 100),
        ([("still", "r1")], RENEWED, Cause.STOOD_STILL, 0),
        ([("still", "somebody else")], RENEWED, Cause.LAPSED, 100),
        # It was only late.
        ([("still", "r1"), SEEN_RENEWED], SEEN_RENEWED[1], Cause.LAPSED, 100),
        # It stood still, and was killed then.
        ([("still", "r1"), DIED], RENEWED, Cause.DIED, 0),
        # A renewal that was on its way when its writer died.
        ([DIED, SEEN_RENEWED], SEEN_RENEWED[1], Cause.DIED, 0),
        # It released the lease, and the proof of its end came first.
        ([DIED, SEEN_FREE], FREE, Cause.RELEASED, 0),
        ([DIED], FREE, Cause.RELEASED, 0),
        ([SEEN_FREE, DIED], FREE, Cause.RELEASED, 0),
        # Another took it and gave it back: that one's end counts.
        ([SEEN_FREE, ("lease", replace(FREE, holder="r3", term=2)), ("lease", replace(FREE, term=2, renewals=4))],
         replace(FREE, term=2, renewals=4), Cause.RELEASED, 20),
        # The holder was only slow.
        ([("challenged", RENEWED), SEEN_RENEWED], SEEN_RENEWED[1], Cause.LAPSED, 100),
        ([("challenged", RENEWED)], RENEWED, Cause.LAPSED, 0),
        # This replica's challenge was carried out and its answer lost: none has led since.
        ([SEEN_FREE, ("lease", replace(FREE, holder=ME, term=2))], replace(FREE, holder=ME, term=2), Cause.RELEASED, 0),
    ],
)  # fmt: skip
def test_the_cause_is_how_the_lease_became_free_and_since_when(
    tracked: Tracked, events: list[Event], expected: LeaseRecord | None, cause: Cause, detected: int
) -> None:
    for number, (kind, of) in enumerate(events):
        tracker = tracked.at(10 * number)
        match kind:
            case "lease":
                tracker.lease_known(of, live=True)
                tracker.lease_known(of, live=True)
            case "died":
                tracker.holder_died(of)
            case "still":
                tracker.holder_stands_still(of)
            case _:
                tracker.challenged(of)
    tracked.at(100).challenged(expected)
    tracked.took_over(110, term=3)
    tracked.stepped(140, began=True)
    assert (tracked.only.cause, tracked.shown(tracked.only)["detected"]) == (cause, detected)


def test_the_first_term_of_all_has_no_holder_before() -> None:
    tracked = Tracked()
    tracked.at(0).lease_known(None, live=True)
    tracked.at(0).challenged(None)
    tracked.took_over(10, term=1, seq=1)
    tracked.stepped(40, began=True)
    failover = tracked.only
    assert (failover.cause, failover.previous_term, failover.previous_holder) == (Cause.FIRST, None, None)
    assert (failover.last_sign_at_ms, failover.detection_ms) == (None, None)


def test_what_a_snapshot_or_a_late_stream_shows_is_no_sign_of_life() -> None:
    tracked = Tracked()
    tracked.at(0).lease_known(HELD, live=False)
    tracked.at(0).journal_seen(head(9), live=False)
    tracked.at(10).lease_known(RENEWED, live=False)
    tracked.at(5_000).challenged(RENEWED)
    tracked.took_over(5_010)
    tracked.stepped(5_040, began=True)
    assert (tracked.only.cause, tracked.only.last_sign_at_ms) == (Cause.LAPSED, None)
    from_its_clock = replace(tracked.only, last_decision_at_ms=WallMs(tracked.t0 - 60_000))
    assert from_its_clock.detection_ms == 65_000


def test_signs_that_arrive_after_the_end_are_late_ones(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(5).journal_seen(head(11), live=True)
    tracked.at(6).lease_known(SEEN_RENEWED[1], live=True)
    tracked.at(7).challenged(SEEN_RENEWED[1])
    tracked.took_over(10, seq=12)
    tracked.stepped(40, began=True)
    assert tracked.shown(tracked.only)["last_sign"] == -100
    assert tracked.only.previous_term == 1


def test_where_nothing_is_due_the_failover_is_reported_at_once(tracked: Tracked) -> None:
    tracked.at(0).lease_known(FREE, live=True)
    tracked.at(0).challenged(FREE)
    tracked.took_over(10)
    tracked.stepped(35)
    assert not tracked.failovers, "that step was taken before the core had its term"
    tracked.stepped(40, began=True)
    failover = tracked.only
    assert (failover.ended, failover.backlog) == (FailoverEnd.CAUGHT_UP, NO_BACKLOG)
    assert (failover.first_decision_at_ms, failover.first_decision_ms, failover.gap_ms) == (None, None, None)


def test_the_backlog_is_all_that_was_due_whatever_became_of_it(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.took_over(10)
    due, nominal = tracked.t0 + 30, make_fire(0).nominal_ms
    late = [make_fire(0), replace(make_fire(0), nominal_ms=WallMs(nominal + 30)), make_fire(-2)]
    in_time = replace(make_fire(0), nominal_ms=WallMs(nominal + 31))
    first: tuple[Decision, ...] = (
        *late,
        Dispatch("a", 1, "p"),
        in_time,
        passed_over(Verdict.COALESCED, due, 7),
        passed_over(Verdict.MISSED, due, 4),
        passed_over(Verdict.MISSED, due + 1, 100),
        passed_over(Verdict.PAUSED, due, 100),
    )
    second: tuple[Decision, ...] = (
        passed_over(Verdict.SKIPPED, due, 2),
        passed_over(Verdict.MISSED, due - 5, 1),
        Requeue("a", 1, "lost"),
        Dispatch("b", 1, "p"),
    )
    tracked.stepped(40, *first, began=True, behind=True)
    tracked.stepped(45, *second)
    tracked.stepped(48, make_fire(9))
    tracked.carried_out(50, *first)
    assert not tracked.failovers, "the second batch belongs to it"
    tracked.carried_out(60, *second)
    assert tracked.only.backlog == Backlog(3, 2_055, coalesced=7, missed=5, skipped=2, requeued=1)
    shown = tracked.shown(tracked.only)
    assert (shown["first_decision"], shown["first_dispatch"], shown["told"]) == (50, 55, 65)
    tracked.carried_out(70, make_fire(9))
    assert len(tracked.failovers) == 1


@pytest.mark.parametrize("answer", [Settlement.LOST, Settlement.UNKNOWN])
def test_what_was_not_carried_out_is_not_counted(tracked: Tracked, answer: Settlement) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.took_over(10)
    tracked.stepped(40, make_fire(0), Dispatch("a", 1, "p"), began=True)
    tracked.carried_out(50, make_fire(0), Dispatch("a", 1, "p"), answer=answer)
    assert (tracked.only.backlog, tracked.only.first_dispatch_at_ms) == (NO_BACKLOG, None)
    assert tracked.shown(tracked.only)["first_decision"] == 50


def test_a_backlog_that_takes_too_long_is_reported_as_far_as_it_got(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.took_over(10)
    tracked.stepped(40, make_fire(0), began=True, behind=True)
    tracked.carried_out(50, make_fire(0))
    tracked.at(30 + BEHIND_MAX_MS - 1).close_if_over()
    assert not tracked.failovers
    tracked.at(30 + BEHIND_MAX_MS).close_if_over()
    assert (tracked.only.ended, tracked.only.backlog.fires_late) == (FailoverEnd.STILL_BEHIND, 1)
    tracked.stepped(30 + BEHIND_MAX_MS + 10)
    tracked.at(30 + BEHIND_MAX_MS + 20).ended(2)
    assert len(tracked.failovers) == 1


@pytest.mark.parametrize("reached", ["began", "deciding", "stepped"])
def test_a_term_that_ends_before_it_has_caught_up_is_reported_as_such(tracked: Tracked, reached: str) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.took_over(10, deciding=reached != "began")
    if reached == "stepped":
        tracked.stepped(40, make_fire(0), began=True)
    tracked.at(90).ended(2)
    failover = tracked.only
    assert (failover.ended, failover.told_at_ms - tracked.t0) == (FailoverEnd.TERM_ENDED, 90)
    assert (failover.deciding_at_ms is None) == (reached == "began")
    assert (failover.first_decision_at_ms, failover.backlog) == (None, NO_BACKLOG)


def test_a_term_that_never_began_is_not_reported_and_the_next_knows_since_when(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.at(10).won(2)
    tracked.at(20).ended(2)
    own = replace(RENEWED, holder=ME, term=2)
    tracked.at(21).lease_known(own, live=True)
    tracked.at(30).lease_known(replace(own, holder=""), live=True)
    assert not tracked.failovers
    tracked.at(40).challenged(replace(own, holder=""))
    tracked.took_over(50, term=3)
    tracked.stepped(80, began=True)
    assert (tracked.only.term, tracked.shown(tracked.only)["detected"], tracked.only.previous_term) == (3, 0, 1)


def test_two_takeovers_in_a_row_are_reported_one_by_one(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.took_over(10)
    own = replace(RENEWED, holder=ME, term=2, renewals=2)
    tracked.at(31).lease_known(own, live=True)
    # A resync in between: the term ends, and the lease is given back.
    tracked.at(50).ended(2)
    tracked.at(55).lease_known(replace(own, holder="", renewals=3), live=False)
    tracked.at(60).challenged(replace(own, holder="", renewals=3))
    tracked.took_over(70, term=3, seq=11)
    tracked.carried_out(95, make_fire(0), term=2)
    tracked.stepped(100, began=True)
    first, second = tracked.failovers
    assert (first.term, first.ended, first.previous_term) == (2, FailoverEnd.TERM_ENDED, 1)
    assert (second.term, second.ended) == (3, FailoverEnd.CAUGHT_UP)
    assert (second.previous_term, second.previous_holder, second.cause) == (2, ME, Cause.RELEASED)
    assert tracked.shown(second)["detected"] == 50, "it knew when its own term ended"
    assert second.backlog == NO_BACKLOG, "what an ended term still has to say is not of this one"


def test_who_was_deposed_and_follows_does_not_hold_the_lease_for_free(tracked: Tracked) -> None:
    tracked.at(0).holder_died("r1")
    tracked.at(0).challenged(RENEWED)
    tracked.took_over(10)
    tracked.stepped(40, began=True)
    third = make_lease("r3", term=3)
    tracked.at(9_000).lease_known(third, live=True)
    tracked.at(9_010).ended(2)
    tracked.at(9_500).holder_died("r3")
    tracked.at(9_510).challenged(third)
    tracked.took_over(9_520, term=4, seq=30)
    tracked.stepped(9_550, began=True)
    assert tracked.shown(tracked.failovers[1])["detected"] == 9_500


def test_the_wall_clock_may_jump_and_the_distances_stay() -> None:
    tracked = Tracked()
    jumped_ms = 0
    tracked.clock.wall_ms = lambda: WallMs(tracked.clock.now + jumped_ms)  # type: ignore[method-assign]  # one hand more
    tracked.at(0).lease_known(HELD, live=True)
    tracked.at(100).lease_known(FREE, live=True)
    tracked.at(100).challenged(FREE)
    tracked.took_over(120)
    jumped_ms = 3_600_000
    tracked.stepped(150, make_fire(0), began=True)
    tracked.carried_out(160, make_fire(0))
    assert (tracked.only.takeover_ms, tracked.only.first_decision_ms) == (40, 20)
    assert tracked.only.told_at_ms == tracked.t0 + 165
