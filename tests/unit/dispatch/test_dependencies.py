"""Jobs that wait for others: without a slot, until the last of them has succeeded, or never."""

import pytest

from hascheduler.dispatch.decisions import Decision, Dispatch, Fail
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Input, TermBegan
from hascheduler.mirror.changes import BatchSeen, JobGone, JobSeen
from hascheduler.model.job import JobState
from tests.unit.dispatch.nouns import make_job, running
from tests.unit.dispatch.scene import Scene, jobs, processors

OK, FAILED, CANCELLED = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


def waiting(id: str = "w", *on: str, ignores: bool = False) -> Input:
    return JobSeen(make_job(id, waits_for=on or ("a", "b"), ignores_failures=ignores))


def scene_of(*facts: Input) -> Scene:
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
    scene = scene_of(waiting())
    scene.at(1, JobSeen(make_job("w", rev=2, waits_for=edited)))
    scene.at(2, JobGone("w", CANCELLED))
    assert scene.at(3, JobGone("a", state), JobGone("b", state), JobGone("c", state)).decisions == ()
    assert scene.at(4, waiting("w")).refetch == ("a", "b")
    assert scene.core.dependencies == 2
    assert scene.at(5, JobGone("a", OK), JobGone("b", OK)).decisions == (Dispatch("w", 1, "p"),)
    assert scene.core.dependencies == 0


def test_why_says_what_it_waits_for_and_no_other_tenants_jobs() -> None:
    scene = scene_of(waiting())
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
    assert scene.core.dependencies == 0


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
