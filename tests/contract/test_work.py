"""`WorkStore`: what a processor may write; every write names the attempt."""

from typing import Any

import pytest

from hascheduler.dispatch.decisions import Fire, Requeue
from hascheduler.errors import InvalidInput
from hascheduler.model.documents import Collection, decode_processor
from hascheduler.model.instants import WallMs
from hascheduler.model.job import OCCUPYING, TERMINAL, JobState
from hascheduler.ports import CancelAnswer, FinishAnswer, Outcome, Standing, StartedJob
from tests.contract.backends import Backend, on
from tests.contract.claim_checks import DONE, applied
from tests.contract.job_states import SUCCEEDED, bring_to, dispatch, finish, start, stored
from tests.contract.racing import RACERS, raced
from tests.contract.work_checks import (
    AT,
    an_old_attempt_can_not_finish,
    an_old_attempt_can_not_start,
    of_racing_starts_one_moves_the_job,
)
from tests.factories import NOW, make_job, make_processor, make_schedule

# Not mongomock: it has no update pipelines.
pytestmark = on("memory", "pymongo", "motor")

LATER = WallMs(AT + 1_000)


# The processor


async def registered(backend: Backend, id: str = "p1") -> object:
    document = await backend.behind.find(Collection.PROCESSORS, id)
    return None if document is None else decode_processor(document["_id"], document)


async def test_a_registration_replaces_the_one_before(backend: Backend) -> None:
    await backend.work.register(make_processor(slots=2, draining=True, parked=7))
    await backend.work.register(make_processor(definitions=("$sleep", "*")))
    assert await registered(backend) == make_processor(definitions=("$sleep", "*"))


async def test_a_heartbeat_is_written_beside_the_rest_of_the_registration(backend: Backend) -> None:
    await backend.work.register(make_processor(slots=3))
    assert await backend.work.beat("p1", 8, draining=True, parked=2) is True
    assert await registered(backend) == make_processor(slots=3, beat=8, draining=True, parked=2)


async def test_a_repeated_heartbeat_is_true_again(backend: Backend) -> None:
    await backend.work.register(make_processor())
    for _ in range(2):
        assert await backend.work.beat("p1", 8, draining=False, parked=0) is True


async def test_a_heartbeat_without_a_registration_is_false_and_makes_none(backend: Backend) -> None:
    await backend.work.register(make_processor())
    await backend.work.deregister("p1")
    await backend.work.deregister("p1")
    assert await backend.work.beat("p1", 2, draining=False, parked=0) is False
    assert await registered(backend) is None


# Start


async def test_a_start_makes_the_job_running_and_returns_what_the_handler_needs(backend: Backend) -> None:
    await backend.jobs.submit(make_job(payload={"m": [1, "$x"]}, labels={"team": "a"}, definition="sleep"))
    await dispatch(backend)
    before = await stored(backend)
    assert await backend.work.start("a", 1, "p1", AT) == StartedJob(
        "a", 1, "sleep", "target", {"m": [1, "$x"]}, "tenant", {"team": "a"}, None, None, NOW
    )
    assert await stored(backend) == {**before, "state": JobState.RUNNING, "started_at_ms": AT, "rev": before["rev"] + 1}


async def test_a_started_fire_knows_its_schedule_and_nominal_time(backend: Backend) -> None:
    await backend.schedules.create(make_schedule())
    fire = Fire("tick", WallMs(NOW + 1_000))
    assert await applied(backend.claims, fire) == [DONE]
    await dispatch(backend, fire.job_id)
    job = await backend.work.start(fire.job_id, 1, "p1", AT)
    assert job is not None
    assert (job.schedule, job.nominal_ms, job.submitted_at_ms) == ("tick", fire.nominal_ms, fire.nominal_ms)


async def test_a_start_repeated_after_an_unknown_answer_returns_the_job_again(backend: Backend) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    first = await backend.work.start("a", 1, "p1", AT)
    started = await stored(backend)
    assert first is not None
    assert await backend.work.start("a", 1, "p1", LATER) == first
    assert await stored(backend) == started


@pytest.mark.parametrize(("attempt", "processor"), [(2, "p1"), (0, "p1"), (1, "p2")])
@pytest.mark.parametrize("state", sorted(OCCUPYING))
async def test_only_the_attempt_and_processor_it_is_promised_to_start_it(
    backend: Backend, state: JobState, attempt: int, processor: str
) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.start("a", attempt, processor, AT) is None
    assert await stored(backend) == before


@pytest.mark.parametrize("state", sorted(TERMINAL | {JobState.PENDING}))
async def test_a_job_that_is_not_promised_does_not_start(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.start("a", before["attempt"], "p1", AT) is None
    assert await stored(backend) == before


async def test_a_cancelled_promise_does_not_start(backend: Backend) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    await backend.jobs.cancel("a", AT)
    assert await backend.work.start("a", 1, "p1", AT) is None


async def test_an_unknown_job_does_not_start(backend: Backend) -> None:
    assert await backend.work.start("nobody", 1, "p1", AT) is None


async def test_an_old_attempt_can_not_start(backend: Backend) -> None:
    await an_old_attempt_can_not_start(backend.work, backend.claims, backend.jobs)


async def test_of_fifty_racing_starts_one_moves_the_job(backend: Backend) -> None:
    await of_racing_starts_one_moves_the_job(backend.work, backend.claims, backend.jobs)


async def test_a_racing_start_and_cancel_agree_on_who_was_first(backend: Backend) -> None:
    for number in range(20):
        id = f"job-{number}"
        await bring_to(backend, JobState.DISPATCHED, id)
        answers: list[Any] = await raced([backend.work.start(id, 1, "p1", AT), backend.jobs.cancel(id, AT)])
        started, cancelled = answers
        expected = CancelAnswer.CANCELLED if started is None else CancelAnswer.ALREADY_RUNNING
        assert cancelled is expected


# Finish


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(JobState.SUCCEEDED, result={"$set": ["$x", None, 1.5]}),
        Outcome(JobState.FAILED, error="$boom"),
        Outcome(JobState.CANCELLED),
    ],
)
async def test_a_finish_ends_the_job_and_keeps_the_record_of_the_attempt(backend: Backend, outcome: Outcome) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await backend.work.finish("a", 1, "p1", outcome, AT) is FinishAnswer.DONE
    after = await stored(backend)
    assert after["expire_at"] is not None
    assert after == {
        **before,
        "state": outcome.state,
        "result": outcome.result,
        "error": outcome.error,
        "processor": None,
        "finished_at_ms": AT,
        "expire_at": after["expire_at"],
        "rev": before["rev"] + 1,
        "attempts": [
            {
                "number": 1,
                "processor": "p1",
                "dispatched_at_ms": before["dispatched_at_ms"],
                "started_at_ms": before["started_at_ms"],
                "finished_at_ms": AT,
                "outcome": outcome.state,
                "error": outcome.error,
            }
        ],
    }


async def test_a_finish_repeated_after_an_unknown_answer_is_done_and_changes_nothing(backend: Backend) -> None:
    await bring_to(backend, JobState.SUCCEEDED)
    before = await stored(backend)
    for _ in range(2):
        assert await backend.work.finish("a", 1, "p1", SUCCEEDED, LATER) is FinishAnswer.DONE
    assert await stored(backend) == before


async def test_an_old_attempt_can_not_finish(backend: Backend) -> None:
    await an_old_attempt_can_not_finish(backend.work, backend.claims, backend.jobs)


async def test_a_late_finish_is_late_however_often_and_kept_once(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await applied(backend.claims, Requeue("a", 1, "dead"))
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE
    after = await stored(backend)
    assert after["state"] == JobState.PENDING
    assert len(after["late_results"]) == 1
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, LATER) is FinishAnswer.LATE
    assert await stored(backend) == after


async def test_a_finish_of_what_another_processor_runs_is_late(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    assert await backend.work.finish("a", 1, "p2", SUCCEEDED, AT) is FinishAnswer.LATE
    assert (await stored(backend))["state"] == JobState.RUNNING


async def test_a_finish_of_an_attempt_that_has_not_started_is_late(backend: Backend) -> None:
    await bring_to(backend, JobState.DISPATCHED)
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE
    assert (await stored(backend))["state"] == JobState.DISPATCHED


async def test_a_finish_of_an_unknown_job_is_late(backend: Backend) -> None:
    assert await backend.work.finish("nobody", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE
    assert await backend.behind.find(Collection.JOBS, "nobody") is None


async def test_late_results_are_bounded(backend: Backend) -> None:
    await bring_to(backend, JobState.PENDING)
    for number in range(15):
        await backend.work.finish("a", 1, f"p{number}", SUCCEEDED, AT)
    kept = (await stored(backend))["late_results"]
    assert [late["processor"] for late in kept] == [f"p{number}" for number in range(5, 15)]


async def test_a_result_that_arrives_before_the_request_to_cancel_is_heeded_wins(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await backend.jobs.cancel("a", AT)
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.DONE
    assert (await stored(backend))["state"] == JobState.SUCCEEDED


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING])
async def test_an_outcome_that_ends_nothing_is_refused(backend: Backend, state: JobState) -> None:
    await bring_to(backend, JobState.RUNNING)
    with pytest.raises(InvalidInput):
        await backend.work.finish("a", 1, "p1", Outcome(state), AT)


@pytest.mark.parametrize("result", [2**63, {"a\0b": 1}, "\ud800", {1: 2}, {1, 2}])
async def test_a_result_that_can_not_be_stored_is_refused_and_the_attempt_goes_on(
    backend: Backend, result: Any
) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    with pytest.raises(InvalidInput):
        await backend.work.finish("a", 1, "p1", Outcome(JobState.SUCCEEDED, result=result), AT)
    assert await stored(backend) == before


async def test_of_fifty_racing_finishes_the_first_is_kept_and_all_are_done(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    rev = (await stored(backend))["rev"]
    answers = await raced(backend.work.finish("a", 1, "p1", SUCCEEDED, WallMs(AT + n)) for n in range(RACERS))
    assert set(answers) == {FinishAnswer.DONE}
    after = await stored(backend)
    assert (after["rev"], len(after["attempts"])) == (rev + 1, 1)


# Giving back


@pytest.mark.parametrize("state", sorted(OCCUPYING))
async def test_what_is_given_back_waits_for_its_next_attempt(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.give_back("a", 1, "p1", "$draining", AT) is True
    after = await stored(backend)
    assert (after["state"], after["attempt"], after["processor"]) == (JobState.PENDING, 1, None)
    assert (after["dispatched_at_ms"], after["started_at_ms"], after["rev"]) == (None, None, before["rev"] + 1)
    assert after["attempts"] == [
        {
            "number": 1,
            "processor": "p1",
            "dispatched_at_ms": before["dispatched_at_ms"],
            "started_at_ms": before["started_at_ms"],
            "finished_at_ms": AT,
            "outcome": "given_back",
            "error": "$draining",
        }
    ]
    assert await backend.work.give_back("a", 1, "p1", "$draining", LATER) is True
    assert await stored(backend) == after
    await dispatch(backend, attempt=2)


@pytest.mark.parametrize(("attempt", "processor"), [(2, "p1"), (1, "p2")])
async def test_what_is_not_ones_own_can_not_be_given_back(backend: Backend, attempt: int, processor: str) -> None:
    await bring_to(backend, JobState.RUNNING)
    before = await stored(backend)
    assert await backend.work.give_back("a", attempt, processor, "draining", AT) is False
    assert await stored(backend) == before


@pytest.mark.parametrize("state", sorted(TERMINAL | {JobState.PENDING}))
async def test_what_ended_can_not_be_given_back(backend: Backend, state: JobState) -> None:
    await bring_to(backend, state)
    before = await stored(backend)
    assert await backend.work.give_back("a", 1, "p1", "draining", AT) is False
    assert await backend.work.give_back("nobody", 1, "p1", "draining", AT) is False
    assert await stored(backend) == before


async def test_an_attempt_that_was_given_back_can_not_finish(backend: Backend) -> None:
    await bring_to(backend, JobState.RUNNING)
    await backend.work.give_back("a", 1, "p1", "draining", AT)
    assert await backend.work.finish("a", 1, "p1", SUCCEEDED, AT) is FinishAnswer.LATE


# Standing


async def test_the_standing_tells_what_to_stop_and_what_is_no_longer_ones_own(backend: Backend) -> None:
    for id in ("runs", "asked", "requeued", "elsewhere", "ended", "second"):
        await bring_to(backend, JobState.RUNNING, id)
    await backend.jobs.cancel("asked", AT)
    for id in ("requeued", "elsewhere", "second"):
        await applied(backend.claims, Requeue(id, 1, "dead"))
    await dispatch(backend, "elsewhere", 2, "p2")
    await dispatch(backend, "second", 2)
    await start(backend, "second", 2)
    await finish(backend, "ended")
    running = [(id, 1) for id in ("runs", "asked", "requeued", "elsewhere", "ended", "second", "nobody")]
    assert await backend.work.standing("p1", [*running, ("second", 2)]) == Standing(
        cancelled=frozenset({("asked", 1)}),
        revoked=frozenset((id, 1) for id in ("requeued", "elsewhere", "ended", "second", "nobody")),
    )


async def test_the_standing_of_nothing_is_empty(backend: Backend) -> None:
    assert await backend.work.standing("p1", []) == Standing(frozenset(), frozenset())
