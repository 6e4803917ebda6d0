"""What the leader counts of its decisions: each once, however often it is applied."""

import asyncio
from collections.abc import Callable, Iterator

import pytest

from hascheduler.daemon.leadership.fence import Fence
from hascheduler.daemon.loop.committer import Committer
from hascheduler.daemon.loop.inbox import Inbox
from hascheduler.dispatch.decisions import Cancel, Decision, Dispatch, Fail, RecordVerdict, Requeue, Settlement
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from hascheduler.testing.memory.leadership import MemoryJournal
from tests.factories import NOW, make_fire
from tests.unit.daemon.doubles import AnsweringClaims, HandClock, RecordingPublisher
from tests.unit.telemetry.scraping import Scrape, scrape

FIRE = make_fire(1)
MISSED = RecordVerdict(
    VerdictRun("tick", Verdict.MISSED, WallMs(NOW), WallMs(NOW + 9_000), 10), make_fire(1).basis
)  # ten times, one record


def done(_: Decision) -> Settlement:
    return Settlement.DONE


async def counted(*batches: tuple[Decision, ...], answer: Callable[[Decision], Settlement] = done) -> Scrape:
    """After the batches were carried out, one by one; the fires were due 1.5 s ago."""
    metrics, clock = ReplicaMetrics(), HandClock()
    fence = await Fence.begin(
        MemoryJournal(MemoryConnection(MemoryDatabase())),
        name="default",
        term=1,
        holder="r1",
        now=WallMs(0),
        trusted=lambda: True,
    )
    assert isinstance(fence, Fence)
    committer = Committer(
        fence,
        claims=AnsweringClaims(answer),
        publisher=RecordingPublisher(),
        inbox=Inbox(),
        clock=clock,
        trusted=lambda: True,
        metrics=metrics,
        due_ms=lambda _: clock.now - 1_500,
    )
    running = asyncio.create_task(committer.run())
    try:
        for decisions in batches:
            assert await committer.ready()
            committer.submit(decisions, majority=False)
            assert await committer.drained(30)
    finally:
        running.cancel()
        await asyncio.wait({running})
    return scrape(metrics.registry)


@pytest.mark.parametrize(
    ("decision", "kind"),
    [
        (FIRE, "fire"),
        (MISSED, "pass_over"),
        (Dispatch("a", 1, "p"), "dispatch"),
        (Requeue("a", 1, "lost"), "requeue"),
        (Fail("a", 1, "lost"), "fail"),
        (Cancel("a", 1, "replaced"), "cancel"),
    ],
)
async def test_decisions_are_counted_by_kind(decision: Decision, kind: str) -> None:
    of = await counted((decision,))
    assert of.by("hascheduler_decisions_total", "kind")[kind] == 1
    assert of.total("hascheduler_decisions_total") == 1
    assert of["hascheduler_journal_append_seconds_count"] == 1
    assert of["hascheduler_journal_apply_seconds_count"] == 1


async def test_a_fire_is_one_verdict_and_its_lag_is_from_when_it_was_due() -> None:
    of = await counted((FIRE,))
    verdicts = {each.value: float(each is Verdict.FIRED) for each in Verdict}
    assert of.by("hascheduler_verdicts_total", "verdict") == verdicts
    assert of["hascheduler_fire_lag_seconds_count"] == 1
    assert of["hascheduler_fire_lag_seconds_sum"] == 1.5


async def test_times_that_were_passed_over_together_are_that_many_verdicts() -> None:
    of = await counted((MISSED,))
    assert of.of("hascheduler_verdicts_total", verdict="missed") == 10
    assert of["hascheduler_fire_lag_seconds_count"] == 0


async def test_a_decision_that_is_decided_again_is_counted_once() -> None:
    of = await counted((FIRE, Dispatch("a", 1, "p")), (FIRE,), (Dispatch("a", 1, "p"),))
    assert of.total("hascheduler_decisions_total") == 2
    assert of.of("hascheduler_verdicts_total", verdict="fired") == 1
    assert of["hascheduler_journal_append_seconds_count"] == 3


async def test_a_verdict_counts_when_it_is_known_to_be_written() -> None:
    answers: Iterator[Settlement] = iter([Settlement.UNKNOWN] * 5 + [Settlement.DONE] * 2)  # it asks five times
    of = await counted((FIRE,), (FIRE,), (FIRE,), answer=lambda _: next(answers))
    assert of.of("hascheduler_verdicts_total", verdict="fired") == 1


async def test_a_fire_that_is_lost_is_no_verdict_and_a_dispatch_that_is_lost_is_a_lost_claim() -> None:
    lost: tuple[Decision, ...] = (FIRE, Dispatch("a", 1, "p"), Dispatch("b", 1, "p"), Cancel("c", 1, "replaced"))
    of = await counted(lost, answer=lambda _: Settlement.LOST)
    assert of.of("hascheduler_verdicts_total", verdict="fired") == 0
    assert of["hascheduler_claims_lost_total"] == 2
