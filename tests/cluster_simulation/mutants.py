"""Bugs of the kind that a careless change would bring back, each planted in an otherwise sound cluster.

`PLANTED` names them, with the faults under which each shows. The suite is worth what it notices: a test runs every one
of them and fails if no checker goes red.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from hascheduler.daemon.replica import Replica
from hascheduler.dispatch.decisions import Decision, Fire, Requeue, Settlement
from hascheduler.mirror.changes import BatchSeen, NounSeen
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import AttemptOutcome, FinishAnswer, JournalEntry, KeyedRetry, RetryAnswer, RetryKey
from hascheduler.processor import Processor
from hascheduler.schema.calendar import Days
from tests.cluster_simulation.cluster import Bugs
from tests.mutants.everywhere import (
    Around,
    FindThenWatch,
    LeaseUpdateWithoutCompare,
    ResumesFromNow,
    never_fences_itself,
)


@dataclass(frozen=True)
class Planted:
    """``faults``: those that bring it to light; ``seeds``: among so many seeds at least one must; ``first``: with which
    the search begins, one that brought it to light before."""

    bugs: Bugs
    faults: tuple[str, ...]
    first: int = 0
    seeds: int = 100


class _JournalWithoutFence(Around):
    """An entry whose seq is taken goes to the next one, whichever leader has written there."""

    async def insert(self, entry: JournalEntry) -> bool:
        store = self._part._store

        async def append() -> bool:
            tail = await store.tail(entry.head.name)
            seq = max(entry.head.seq, 0 if tail is None else tail.seq + 1)
            return bool(await store.insert(replace(entry, head=replace(entry.head, seq=seq))))

        return bool(await self._part._link.call("insert", append))


class _AdvanceBeforeFire(Around):
    """The cursor moves in a write of its own, before the job is there."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        fires = [decision for decision in decisions if isinstance(decision, Fire)]
        link, store = self._part._link, self._part._claims
        if fires:
            await link.call("advance", lambda: _advance(store._connection, fires), majority=False)
        return list(await self._part.apply(decisions, at_ms, majority=majority))


async def _advance(connection: Any, fires: Sequence[Fire]) -> None:
    async with connection.exchange("advance") as database:
        for fire in fires:
            schedule = database.find(Collection.SCHEDULES, fire.schedule)
            if schedule is not None:
                database.update(Collection.SCHEDULES, schedule, {"cursor_ms": fire.nominal_ms})


class _LossCountsAsFailure(Around):
    """As in 0.2.0: a job whose processor dies has a try less."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        lost = [each for each in decisions if isinstance(each, Requeue) and each.reason == "processor lost"]
        link, store = self._part._link, self._part._claims
        if lost:
            await link.call("count", lambda: _count_failures(store._connection, lost), majority=False)
        return list(await self._part.apply(decisions, at_ms, majority=majority))


class _WaitsForNothing(Around):
    """The graph of a fire begins beside that of the fire before."""

    async def apply(self, decisions: Sequence[Decision], at_ms: WallMs, *, majority: bool) -> list[Settlement]:
        begun = [replace(each, after=()) if isinstance(each, Fire) else each for each in decisions]
        return list(await self._part.apply(begun, at_ms, majority=majority))


async def _count_failures(connection: Any, lost: Sequence[Requeue]) -> None:
    """Beforehand, so that the write that follows takes one of each back to the same sum."""
    async with connection.exchange("count") as database:
        for requeue in lost:
            job = database.find(Collection.JOBS, requeue.job_id)
            if job is not None and (job["state"], job["attempt"]) == ("running", requeue.attempt):
                counts = {"failures": job["failures"] + 1, "losses": job["losses"] - 1}
                database.update(Collection.JOBS, job, counts)


class _FinishWithoutAttempt(Around):
    """Ends whatever attempt the job has now, also another processor's."""

    async def finish(
        self, job_id: str, attempt: int, processor_id: str, outcome: AttemptOutcome, at_ms: WallMs
    ) -> FinishAnswer:
        link, store = self._part._link, self._part._store

        async def finish() -> Any:
            async with store._connection.exchange("look") as database:
                job = database.find(Collection.JOBS, job_id)
            if job is None or job["processor"] is None:
                return FinishAnswer.LATE
            return await store.finish(job_id, job["attempt"], job["processor"], outcome, at_ms)

        answer: FinishAnswer = await link.call("finish", finish)
        return answer


class _RevivedUnderItsOldNumber(Around):
    """A revival that leaves the attempt number as it is: what was decided about the job before holds again."""

    async def retry(self, job_id: str, at_ms: WallMs, key: RetryKey | None = None) -> KeyedRetry | None:
        answer: KeyedRetry | None = await self._part.retry(job_id, at_ms, key)
        async with self._part._connection.exchange("retry") as database:
            job = database.find(Collection.JOBS, job_id)
            if job is not None and answer == KeyedRetry(RetryAnswer.OK):
                database.update(Collection.JOBS, job, {"attempt": job["attempt"] - 1})
        return answer


def _no_renew_deadline(replica: Replica) -> None:
    elector = replica.leader.elector
    patient = copy(elector._config)
    object.__setattr__(patient, "renew_deadline_ms", 10**9)
    elector._config = patient


def _dead_stream_unnoticed(replica: Replica) -> None:
    class Fresh(type(replica._heartbeat)):  # type: ignore[misc]  # the same, but for one answer
        fresh = True

    replica._heartbeat.__class__ = Fresh


def _decides_before_the_barrier(replica: Replica) -> None:
    async def delivered(seq: int) -> None:
        return

    replica.leader._delivered = delivered  # type: ignore[method-assign]


def _runs_duplicates(processor: Processor) -> None:
    attempts = processor.attempts
    hold = attempts.hold

    async def hold_again(key: Any) -> Any:
        attempts._held.pop(key, None)
        return await hold(key)

    attempts.hold = hold_again  # type: ignore[method-assign]


_LEADERS = ("kill_leader", "pause_leader", "cut_leader_from_database")


def _suspects_without_budget(replica: Replica) -> None:
    """Wrong suspicions cost nothing, and the leaders' lateness teaches nothing."""
    suspicion = replica._standstill.suspicion
    suspicion._was_wrong = lambda now: None  # type: ignore[method-assign]
    suspicion._note = lambda gap_ms, now: None  # type: ignore[method-assign]


def _is_of(collection: Collection, seen: Any) -> bool:
    return isinstance(seen, NounSeen) and seen.collection is collection and seen.noun is not None


def _heeds_no_pause(replica: Replica) -> None:
    core: Any = replica.view.core
    fold = core._fold
    core._fold = lambda seen, now: None if _is_of(Collection.PAUSES, seen) else fold(seen, now)


def _takes_each_batch_for_over(replica: Replica) -> None:
    """As soon as it has read it, however many of its jobs are live."""
    core: Any = replica.view.core
    fold = core._fold

    def hasty(seen: Any, now: WallMs) -> None:
        if isinstance(seen, BatchSeen):
            core._jobs.dependencies._live.clear()
            seen = BatchSeen(seen.batch, is_live=False)
        fold(seen, now)

    core._fold = hasty


def _hears_of_no_edited_calendar(replica: Replica) -> None:
    """It knows each version, and looks at no schedule again."""
    core: Any = replica.view.core
    fold = core._fold

    def deaf(seen: Any, now: WallMs) -> None:
        if _is_of(Collection.CALENDARS, seen):
            core.state.rules.calendars[seen.id] = seen.noun
        else:
            fold(seen, now)

    core._fold = deaf


def _counts_days_from_one(replica: Replica) -> None:
    core: Any = replica.view.core
    fold = core._fold

    def late(seen: Any, now: WallMs) -> None:
        if _is_of(Collection.CALENDARS, seen):
            spans = tuple((first + 1, last + 1) for first, last in seen.noun.include.spans)
            seen = replace(seen, noun=seen.noun.model_copy(update={"include": Days(spans)}))
        fold(seen, now)

    core._fold = late


PLANTED: Mapping[str, Planted] = {
    "lease-without-compare-and-set": Planted(Bugs(leases=LeaseUpdateWithoutCompare), _LEADERS),
    "no-renew-deadline": Planted(Bugs(replica=_no_renew_deadline), ("leader_lease_hangs",)),
    "find-then-watch": Planted(Bugs(source=FindThenWatch), ("kill", "history_lost"), first=7),
    "dead-stream-unnoticed": Planted(Bugs(replica=_dead_stream_unnoticed), ("hold_stream",)),
    "fence-skipped": Planted(Bugs(journal=_JournalWithoutFence), (*_LEADERS, "lossy_network"), first=20),
    "deciding-before-the-barrier": Planted(
        Bugs(replica=_decides_before_the_barrier), ("hold_stream", "kill_leader"), first=18
    ),
    "attempt-check-dropped-on-finish": Planted(
        Bugs(work=_FinishWithoutAttempt), ("pause_processor", "cut_from_database", "lossy_network"), first=78
    ),
    "advance-before-fire": Planted(Bugs(claims=_AdvanceBeforeFire), ("kill_leader", "fail_over", "lossy_network")),
    "resume-from-now-after-lost-history": Planted(Bugs(source=ResumesFromNow), ("history_lost",)),
    "duplicate-publish-run-twice": Planted(Bugs(processor=_runs_duplicates), ("lossy_broker",)),
    "revived-under-its-old-number": Planted(Bugs(jobs=_RevivedUnderItsOldNumber), ("kill_leader", "lossy_network")),
    "loss-counts-as-failure": Planted(Bugs(claims=_LossCountsAsFailure), ("kill_processor", "cut_from_database")),
    "graph-waits-for-nothing": Planted(Bugs(claims=_WaitsForNothing), ("kill_leader",)),
    "pause-not-heeded": Planted(Bugs(replica=_heeds_no_pause), ("pause_everything", "kill_leader")),
    "batch-over-too-soon": Planted(Bugs(replica=_takes_each_batch_for_over), ("kill_leader", "lossy_network")),
    "edited-calendar-unheard": Planted(Bugs(replica=_hears_of_no_edited_calendar), ("kill_leader", "lossy_network")),
    "days-counted-from-one": Planted(Bugs(replica=_counts_days_from_one), ("kill_leader", "lossy_network")),
    "suspicion-without-budget": Planted(Bugs(replica=_suspects_without_budget), ("starve_leader", "starve"), first=9),
    "processor-without-fence": Planted(Bugs(processor=never_fences_itself), ("cut_from_database",)),
}
