"""What holds jobs back: a pause, a drain, a held partition, or the jobs that they wait for; and what comes after."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.dispatch.decisions import (
    NOT_STARTED,
    Decision,
    Dispatch,
    Fail,
    Fire,
    RecordVerdict,
    ReleaseHold,
    Requeue,
)
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Input, TermBegan, TrustLost
from hascheduler.mirror.changes import BatchSeen, JobGone, JobSeen, NounSeen, ScheduleSeen
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.partition import Hold, partition_key, partition_of
from hascheduler.schema.pause import EVERYTHING, StandingPause
from hascheduler.schema.schedule import CatchUp, SchedulePolicy, ScheduleRef
from tests.unit.dispatch.nouns import dispatched, make_job, make_schedule, noun_seen, running, wall
from tests.unit.dispatch.scene import Scene, jobs, processors

ALL = StandingPause(id=EVERYTHING, rev=1, since_ms=wall(0), by="deployer", because="it burns")
POLICIES = [
    SchedulePolicy(grace_ms=grace_ms, catch_up=catch_up) for grace_ms in (500, 5_000, 3_600_000) for catch_up in CatchUp
]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_after_a_pause_each_schedule_catches_up_as_after_a_time_without_a_leader(policy: SchedulePolicy) -> None:
    paused, leaderless = (Scene(ScheduleSeen(make_schedule("s", policy=policy))) for _ in range(2))
    paused.at(500, noun_seen(ALL))
    leaderless.at(500, TrustLost())
    for span_ms in range(1_000, 10_000, 500):
        assert paused.at(span_ms).decisions == leaderless.at(span_ms).decisions == ()
    resumed = paused.at(9_700, NounSeen(Collection.PAUSES, EVERYTHING)).decisions
    assert resumed == leaderless.at(9_700, TermBegan(2)).decisions
    assert {type(each) for each in resumed} <= {Fire, RecordVerdict}
    assert resumed


def test_why_a_job_waits_says_who_paused_everything_and_why() -> None:
    scene = Scene(noun_seen(ALL), *processors("p"), *jobs(make_job("a")))
    explanation = scene.why("a", 5)
    [block] = explanation.blocks
    assert (block.rule, block.unblocked_by) == (BlockReason.PAUSED, "hascheduler resume --all")
    assert block.because.startswith("everything is paused since ")
    assert block.because.endswith(" by deployer: it burns")
    assert explanation.position is not None
    assert explanation.position.ahead == 0


TENANT, OTHER = "acme", "t1"
PARTITION = partition_of(TENANT)
KEY = partition_key(PARTITION)
SHARD: dict[str, Any] = {"part": (1, 2)}
HELD = noun_seen(Hold(KEY, 5, is_held=True))
LIFTED = noun_seen(Hold(KEY, 6, is_held=False))
RELEASE = ReleaseHold(KEY, 5)


def scene_of(*facts: Input, leading: bool = True) -> Scene:
    return Scene(*processors("p", slots=10), *facts, leading=leading, **SHARD)


def kept_aside(scene: Scene) -> int:
    return len(list(scene.core._held.kept()))


def ours(id: str, **more: Any) -> Any:
    return make_job(id, tenant=TENANT, **more)


def theirs(name: str) -> ScheduleRef:
    schedule = make_schedule(name, every_ms=60_000)
    return replace(schedule, template=replace(schedule.template, tenant=TENANT))


def started(scene: Scene, at: int, *inputs: Input) -> list[str]:
    decisions = scene.at(at, *inputs).decisions
    return [each.job_id for each in decisions if isinstance(each, Dispatch)]


def test_jobs_of_a_held_partition_wait_and_those_of_others_do_not() -> None:
    scene = scene_of(HELD)
    assert started(scene, 1, *jobs(ours("a"), make_job("b", tenant=OTHER))) == ["b"]
    assert kept_aside(scene) == 1
    assert started(scene, 2, LIFTED) == ["a"]
    assert kept_aside(scene) == 0


def test_a_partition_is_released_once_nothing_of_it_runs_or_is_promised() -> None:
    scene = scene_of()
    assert started(scene, 1, *jobs(ours("a"))) == ["a"]
    assert RELEASE not in scene.at(2, HELD).decisions, "it is promised to a processor"
    assert RELEASE not in scene.at(3, JobSeen(dispatched("a", "p", tenant=TENANT))).decisions, "who has it"
    assert scene.at(4, JobGone("a", JobState.SUCCEEDED)).decisions == (RELEASE,)
    assert RELEASE not in scene.at(5).decisions
    assert RELEASE in scene.at(6, noun_seen(Hold(KEY, 5, is_held=True, released=5))).settled


@pytest.mark.parametrize("is_held_first", [True, False])
def test_the_copy_of_a_job_that_another_shard_runs_is_left_alone(is_held_first: bool) -> None:
    copied: list[Any] = [JobSeen(dispatched("a", "theirs", tenant=TENANT))]
    silent = noun_seen(Hold(KEY, 5, is_held=True, is_silent=True))
    scene = scene_of(*([silent, *copied] if is_held_first else [*copied, silent]))
    assert scene.at(100_000).decisions == (RELEASE,), "what is there before the hold, a snapshot has told first"
    assert kept_aside(scene) == 1
    assert scene.at(200_000, noun_seen(Hold(KEY, 5, True, True, 5)), *copied).decisions == ()


def test_a_schedule_of_a_held_partition_fires_when_the_hold_is_lifted_and_not_before() -> None:
    scene = scene_of(ScheduleSeen(theirs("s")))
    assert scene.at(1, HELD).decisions == (RELEASE,)
    assert not [each for each in scene.at(120_000).decisions if isinstance(each, Fire)]
    assert [each for each in scene.at(120_001, LIFTED).decisions if isinstance(each, Fire)]


def test_a_fire_that_is_promised_holds_the_release_and_nothing_more_is_decided_of_its_schedule() -> None:
    scene = scene_of(ScheduleSeen(theirs("s")))
    [fire, *_] = [each for each in scene.at(60_000).decisions if isinstance(each, Fire)]
    holding = scene.at(60_001, HELD)
    assert holding.decisions == ()
    assert not [each for each in scene.at(180_000, HELD).decisions if isinstance(each, Fire) and each != fire]


def test_a_successor_that_applied_a_dispatch_again_waits_for_its_end() -> None:
    kept = ours("a", attempt=1, rev=3)
    scene = scene_of(HELD, *jobs(kept), leading=False)
    shown = scene.at(1, TermBegan(2, (Dispatch("a", 1, "p"),)))
    assert RELEASE in shown.decisions, "the attempt is over: it was given back"
    scene.at(2, TrustLost())
    later = scene.at(3, TermBegan(3, (Dispatch("a", 2, "p"),)))
    assert RELEASE not in later.decisions
    assert RELEASE in scene.at(4, JobSeen(ours("a", attempt=2, rev=5))).decisions


def test_what_comes_late_to_a_partition_that_was_released_is_recalled_and_sent_to_nobody() -> None:
    scene = scene_of(HELD)
    scene.at(1, noun_seen(Hold(KEY, 5, is_held=True, released=5)))
    late = scene.at(90_000, JobSeen(dispatched("a", "p", tenant=TENANT)))
    assert late.decisions == (Requeue("a", 1, NOT_STARTED),)
    assert late.sends == ()
    scene.at(90_001, JobSeen(ours("a", attempt=1, rev=3)))
    assert kept_aside(scene) == 1


OK, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


def waiting(id: str = "w", *on: str, ignores: bool = False) -> Input:
    return JobSeen(make_job(id, waits_for=on or ("a", "b"), ignores_failures=ignores))


def scene_of_two(*facts: Input) -> Scene:
    return Scene(*processors("p", slots=4), *jobs(running("a", "p"), running("b", "p")), *facts)


def test_what_is_not_known_as_live_is_read_once_and_by_a_leader_alone() -> None:
    scene = Scene(*processors("p"), waiting("w", "gone"), leading=False)
    assert scene.at(0).refetch == ()
    assert scene.at(1, TermBegan(1)).refetch == ("gone",)
    assert scene.at(2).refetch == ()
    assert scene.at(3, JobGone("gone", OK)).decisions == (Dispatch("w", 1, "p"),)


@pytest.mark.parametrize("edited", [(), ("c",), ("a", "c")])
@pytest.mark.parametrize("state", [OK, FAILED])
def test_dependencies_that_were_edited_by_hand_do_no_harm(edited: tuple[str, ...], state: JobState) -> None:
    scene = scene_of_two(waiting())
    scene.at(1, JobSeen(make_job("w", rev=2, waits_for=edited)))
    scene.at(2, JobGone("w", CANCELLED))
    assert scene.at(3, JobGone("a", state), JobGone("b", state), JobGone("c", state)).decisions == ()
    assert scene.at(4, waiting("w")).refetch == ("a", "b")
    assert scene.core.state.jobs.dependencies.count == 2
    assert scene.at(5, JobGone("a", OK), JobGone("b", OK)).decisions == (Dispatch("w", 1, "p"),)
    assert scene.core.state.jobs.dependencies.count == 0


def test_why_says_what_it_waits_for_and_no_other_tenants_jobs() -> None:
    scene = scene_of_two(waiting())
    explanation = scene.why("w", 1)
    [block] = explanation.blocks
    assert (block.rule, block.because) == (BlockReason.DEPENDENCY, "'a', 'b' have yet to succeed")
    explanation = scene.why("w", 1, only="another")
    assert "'a'" not in explanation.blocks[0].because
    assert explanation.blocks[0].numbers["jobs"] == ["a job of another tenant"] * 2


X = "batch:x"


def of_batch(*ids: str) -> list[Input]:
    return jobs(*(running(id, "p", batch=X) for id in ids))


def scene_of_batch(*members: str, ignores: bool = False, leading: bool = True) -> Scene:
    return Scene(*processors("p", slots=4), *of_batch(*members), waiting("w", X, ignores=ignores), leading=leading)


def test_a_job_goes_on_once_the_database_says_that_all_jobs_of_its_batch_succeeded() -> None:
    scene = scene_of_batch("a", "b")
    assert scene.began.refetch == (X,)
    assert scene.at(1, BatchSeen(X, is_live=True)).decisions == ()
    assert scene.at(2, JobGone("a", OK)).refetch == ()
    step = scene.at(3, JobGone("b", OK))
    assert (step.decisions, step.refetch) == ((), (X,))
    explanation = scene.why("w", 4)
    assert explanation.blocks[0].because == "all jobs of 'batch:x' have ended, and their outcome is being read"
    assert scene.at(5).refetch == ()
    assert scene.at(6, BatchSeen(X, is_live=False)).decisions == (Dispatch("w", 1, "p"),)
    assert scene.core.state.jobs.dependencies.count == 0


CASES: dict[str, tuple[list[Input], bool, tuple[Decision, ...]]] = {
    "one fails": ([JobGone("a", FAILED)], False, (Fail("w", 0, "its dependency a failed"),)),
    "one is cancelled": ([JobGone("a", CANCELLED)], False, (Fail("w", 0, "its dependency a was cancelled"),)),
    "one fails, and that is ignored": ([JobGone("a", FAILED)], True, ()),
    "one had failed before": (
        [BatchSeen(X, is_live=True, failed=("z", FAILED))], False, (Fail("w", 0, "its dependency z failed"),)
    ),
    "one had failed before, and that is ignored": ([BatchSeen(X, is_live=True, failed=("z", FAILED))], True, ()),
    "all end, one of them badly": (
        [JobGone("b", OK), JobGone("a", OK), BatchSeen(X, is_live=False, failed=("z", FAILED))],
        False,
        (Fail("w", 0, "its dependency z failed"),),
    ),
    "all end, one of them badly, and that is ignored": (
        [JobGone("b", OK), JobGone("a", FAILED), BatchSeen(X, is_live=False, failed=("a", FAILED))],
        True,
        (Dispatch("w", 1, "p"),),
    ),
    "all were deleted": (
        [JobGone("a"), JobGone("b"), BatchSeen(X, is_live=False)], False, (Dispatch("w", 1, "p"),)
    ),
    "an answer of before one more came": (
        [*of_batch("c"), JobGone("a", OK), JobGone("b", OK), BatchSeen(X, is_live=False)], False, ()
    ),
    "one that no mirror can read is live": (
        [JobGone("a", OK), JobGone("b", OK), BatchSeen(X, is_live=True)], False, ()
    ),
    "another batch": ([BatchSeen("batch:y", is_live=False, failed=("z", FAILED))], False, ()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_a_job_that_waits_for_a_batch(case: str) -> None:
    inputs, ignores, decided = CASES[case]
    scene = scene_of_batch("a", "b", ignores=ignores)
    assert scene.at(1, *inputs).decisions == decided


def test_a_new_leader_reads_few_of_the_batches_that_go_on_at_once_and_all_in_the_end() -> None:
    batches = [f"batch:{number}" for number in range(250)]
    members = jobs(*(make_job(f"m{number}", batch=batch) for number, batch in enumerate(batches)))
    scene = Scene(*members, *(waiting(f"w{number}", batch) for number, batch in enumerate(batches)), leading=False)
    read = [*scene.at(1, TermBegan(1)).refetch]
    assert len(read) == 100
    over = JobGone("m249", OK)
    read += scene.at(2, over).refetch
    assert read[100] == batches[249], "whose dependents may run goes first"
    read += scene.at(3).refetch
    assert sorted(read) == sorted(batches)
