"""The account of a takeover, by what it is told. Time moves only between two things that happen."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.daemon.leadership.failover_tracker import BEHIND_MAX_MS, FailoverTracker
from hascheduler.dispatch.decisions import Decision, Dispatch, RecordVerdict, Requeue, Settlement
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.dispatch.step import Step
from hascheduler.model.failover import NO_BACKLOG, Backlog, Cause, Failover, FailoverEnd
from hascheduler.model.instants import WallMs
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.lease import LeaseRecord
from hascheduler.model.schedule import Basis
from hascheduler.model.verdict import Verdict, VerdictRun
from tests.factories import make_fire, make_lease
from tests.unit.daemon.doubles import HandClock

ME = "r2"


class Told:
    """An account whose clock stands at ``at(…)`` ms, and what it told."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.t0 = self.clock.now
        self.failovers: list[Failover] = []
        self.account = FailoverTracker(
            "default", ME, self.clock, self.failovers.append, lambda fire: fire.nominal_ms - NOW + self.t0
        )

    def at(self, ms: int) -> FailoverTracker:
        self.clock.now = self.t0 + ms
        return self.account

    def took_over(self, ms: int, term: int = 2, seq: int = 10, *, deciding: bool = True) -> None:
        """From winning to deciding, 10 ms each."""
        self.at(ms).won(term)
        self.at(ms + 10).began(head(seq, term, ME, EntryKind.TERM_BEGAN))
        self.at(ms + 15).reapplied(term, 2, 5)
        self.at(ms + 17).journal_seen(head(seq, term, ME, EntryKind.TERM_BEGAN), live=True)
        if deciding:
            self.at(ms + 20).deciding(term)

    def stepped(self, ms: int, *decisions: Decision, began: bool = False, behind: bool = False) -> None:
        account = self.at(ms)
        now = self.clock.wall_ms()
        wake_at_ms = now if behind else WallMs(now + 100)
        account.stepped([TermBegan(2)] if began else [], Step(decisions, wake_at_ms=wake_at_ms), now)

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
def told() -> Told:
    """Another leads in term 1, and showed life 100 ms ago."""
    told = Told()
    told.at(-500).lease_known(HELD, live=True)
    told.at(-400).journal_seen(head(8), live=True)
    told.at(-200).lease_known(RENEWED, live=True)
    told.at(-100).journal_seen(head(9), live=True)
    return told


def test_every_instant_is_the_one_at_which_it_was_told(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(30).challenged(RENEWED)
    told.took_over(40)
    fire, dispatch = make_fire(0), Dispatch("a", 1, "p")
    told.stepped(70, fire, dispatch, began=True)
    told.carried_out(80, fire, dispatch)
    failover = told.only
    assert told.shown(failover) == {
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
    assert replace(failover, last_decision_at_ms=WallMs(told.t0 - 120)).gap_ms == 200


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
        # One's own challenge was carried out and its answer lost: nobody has led since.
        ([SEEN_FREE, ("lease", replace(FREE, holder=ME, term=2))], replace(FREE, holder=ME, term=2), Cause.RELEASED, 0),
    ],
)  # fmt: skip
def test_the_cause_is_how_the_lease_became_free_and_since_when(
    told: Told, events: list[Event], expected: LeaseRecord | None, cause: Cause, detected: int
) -> None:
    for number, (kind, of) in enumerate(events):
        account = told.at(10 * number)
        match kind:
            case "lease":
                account.lease_known(of, live=True)
                account.lease_known(of, live=True)
            case "died":
                account.holder_died(of)
            case _:
                account.challenged(of)
    told.at(100).challenged(expected)
    told.took_over(110, term=3)
    told.stepped(140, began=True)
    assert (told.only.cause, told.shown(told.only)["detected"]) == (cause, detected)


def test_the_first_of_all_has_nobody_before() -> None:
    told = Told()
    told.at(0).lease_known(None, live=True)
    told.at(0).challenged(None)
    told.took_over(10, term=1, seq=1)
    told.stepped(40, began=True)
    failover = told.only
    assert (failover.cause, failover.previous_term, failover.previous_holder) == (Cause.FIRST, None, None)
    assert (failover.last_sign_at_ms, failover.detection_ms) == (None, None)


def test_what_a_snapshot_or_a_late_stream_shows_is_no_sign_of_life() -> None:
    told = Told()
    told.at(0).lease_known(HELD, live=False)
    told.at(0).journal_seen(head(9), live=False)
    told.at(10).lease_known(RENEWED, live=False)
    told.at(5_000).challenged(RENEWED)
    told.took_over(5_010)
    told.stepped(5_040, began=True)
    assert (told.only.cause, told.only.last_sign_at_ms) == (Cause.LAPSED, None)
    from_its_clock = replace(told.only, last_decision_at_ms=WallMs(told.t0 - 60_000))
    assert from_its_clock.detection_ms == 65_000


def test_signs_that_arrive_after_the_end_are_late_ones(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(5).journal_seen(head(11), live=True)
    told.at(6).lease_known(SEEN_RENEWED[1], live=True)
    told.at(7).challenged(SEEN_RENEWED[1])
    told.took_over(10, seq=12)
    told.stepped(40, began=True)
    assert told.shown(told.only)["last_sign"] == -100
    assert told.only.previous_term == 1


def test_where_nothing_is_due_the_account_is_closed_at_once(told: Told) -> None:
    told.at(0).lease_known(FREE, live=True)
    told.at(0).challenged(FREE)
    told.took_over(10)
    told.stepped(35)
    assert not told.failovers, "that step was taken before the core was told of its term"
    told.stepped(40, began=True)
    failover = told.only
    assert (failover.ended, failover.backlog) == (FailoverEnd.CAUGHT_UP, NO_BACKLOG)
    assert (failover.first_decision_at_ms, failover.first_decision_ms, failover.gap_ms) == (None, None, None)


def test_the_backlog_is_all_that_was_due_whatever_became_of_it(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.took_over(10)
    due, nominal = told.t0 + 30, make_fire(0).nominal_ms
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
    told.stepped(40, *first, began=True, behind=True)
    told.stepped(45, *second)
    told.stepped(48, make_fire(9))
    told.carried_out(50, *first)
    assert not told.failovers, "the second batch belongs to it"
    told.carried_out(60, *second)
    assert told.only.backlog == Backlog(3, 2_055, coalesced=7, missed=5, skipped=2, requeued=1)
    shown = told.shown(told.only)
    assert (shown["first_decision"], shown["first_dispatch"], shown["told"]) == (50, 55, 65)
    told.carried_out(70, make_fire(9))
    assert len(told.failovers) == 1


@pytest.mark.parametrize("answer", [Settlement.LOST, Settlement.UNKNOWN])
def test_what_was_not_carried_out_is_not_counted(told: Told, answer: Settlement) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.took_over(10)
    told.stepped(40, make_fire(0), Dispatch("a", 1, "p"), began=True)
    told.carried_out(50, make_fire(0), Dispatch("a", 1, "p"), answer=answer)
    assert (told.only.backlog, told.only.first_dispatch_at_ms) == (NO_BACKLOG, None)
    assert told.shown(told.only)["first_decision"] == 50


def test_a_backlog_that_takes_too_long_is_told_as_far_as_it_got(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.took_over(10)
    told.stepped(40, make_fire(0), began=True, behind=True)
    told.carried_out(50, make_fire(0))
    told.at(30 + BEHIND_MAX_MS - 1).close_if_over()
    assert not told.failovers
    told.at(30 + BEHIND_MAX_MS).close_if_over()
    assert (told.only.ended, told.only.backlog.fires_late) == (FailoverEnd.STILL_BEHIND, 1)
    told.stepped(30 + BEHIND_MAX_MS + 10)
    told.at(30 + BEHIND_MAX_MS + 20).ended(2)
    assert len(told.failovers) == 1


@pytest.mark.parametrize("reached", ["began", "deciding", "stepped"])
def test_a_term_that_ends_before_it_has_caught_up_is_told_so(told: Told, reached: str) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.took_over(10, deciding=reached != "began")
    if reached == "stepped":
        told.stepped(40, make_fire(0), began=True)
    told.at(90).ended(2)
    failover = told.only
    assert (failover.ended, failover.told_at_ms - told.t0) == (FailoverEnd.TERM_ENDED, 90)
    assert (failover.deciding_at_ms is None) == (reached == "began")
    assert (failover.first_decision_at_ms, failover.backlog) == (None, NO_BACKLOG)


def test_a_term_that_never_began_has_no_account_and_the_next_knows_since_when(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.at(10).won(2)
    told.at(20).ended(2)
    own = replace(RENEWED, holder=ME, term=2)
    told.at(21).lease_known(own, live=True)
    told.at(30).lease_known(replace(own, holder=""), live=True)
    assert not told.failovers
    told.at(40).challenged(replace(own, holder=""))
    told.took_over(50, term=3)
    told.stepped(80, began=True)
    assert (told.only.term, told.shown(told.only)["detected"], told.only.previous_term) == (3, 0, 1)


def test_two_takeovers_in_a_row_have_an_account_each(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.took_over(10)
    own = replace(RENEWED, holder=ME, term=2, renewals=2)
    told.at(31).lease_known(own, live=True)
    # A resync in between: the term ends, and the lease is given back.
    told.at(50).ended(2)
    told.at(55).lease_known(replace(own, holder="", renewals=3), live=False)
    told.at(60).challenged(replace(own, holder="", renewals=3))
    told.took_over(70, term=3, seq=11)
    told.carried_out(95, make_fire(0), term=2)
    told.stepped(100, began=True)
    first, second = told.failovers
    assert (first.term, first.ended, first.previous_term) == (2, FailoverEnd.TERM_ENDED, 1)
    assert (second.term, second.ended) == (3, FailoverEnd.CAUGHT_UP)
    assert (second.previous_term, second.previous_holder, second.cause) == (2, ME, Cause.RELEASED)
    assert told.shown(second)["detected"] == 50, "it knew when its own term ended"
    assert second.backlog == NO_BACKLOG, "what an ended term still has to say is not of this one"


def test_who_was_deposed_and_follows_does_not_hold_the_lease_for_free(told: Told) -> None:
    told.at(0).holder_died("r1")
    told.at(0).challenged(RENEWED)
    told.took_over(10)
    told.stepped(40, began=True)
    third = make_lease("r3", term=3)
    told.at(9_000).lease_known(third, live=True)
    told.at(9_010).ended(2)
    told.at(9_500).holder_died("r3")
    told.at(9_510).challenged(third)
    told.took_over(9_520, term=4, seq=30)
    told.stepped(9_550, began=True)
    assert told.shown(told.failovers[1])["detected"] == 9_500


def test_the_wall_clock_may_jump_and_the_distances_stay() -> None:
    told = Told()
    jumped_ms = 0
    told.clock.wall_ms = lambda: WallMs(told.clock.now + jumped_ms)  # type: ignore[method-assign]  # one hand more
    told.at(0).lease_known(HELD, live=True)
    told.at(100).lease_known(FREE, live=True)
    told.at(100).challenged(FREE)
    told.took_over(120)
    jumped_ms = 3_600_000
    told.stepped(150, make_fire(0), began=True)
    told.carried_out(160, make_fire(0))
    assert (told.only.takeover_ms, told.only.first_decision_ms) == (40, 20)
    assert told.only.told_at_ms == told.t0 + 165
