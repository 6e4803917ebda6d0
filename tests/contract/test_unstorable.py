"""All stores: a value that no database can hold is the caller's mistake, and nothing is written."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.ports import AttemptOutcome
from tests.contract.backends import Backend, on
from tests.contract.checks import AFTER as AT
from tests.contract.job_states import bring_to
from tests.factories import make_job, make_schedule

pytestmark = on("memory", "pymongo", "motor")  # not mongomock: it holds anything


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def finish(backend: Backend, processor: str, value: Any) -> Awaitable[object]:
    return backend.work.finish("a", 1, processor, AttemptOutcome(JobState.SUCCEEDED, result=value), AT)


WRITES: dict[str, Callable[[Backend, Any], Awaitable[object]]] = {
    "a new schedule": lambda backend, value: backend.schedules.create(make_schedule("new", payload=value)),
    "an edit": lambda backend, value: backend.schedules.edit("tick", 1, {"payload": value}),
    "a job": lambda backend, value: backend.jobs.submit(make_job("new", payload=value)),
    "a result": lambda backend, value: finish(backend, "p1", value),
    "a late result": lambda backend, value: finish(backend, "p2", value),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(2**63, id="65 bits"),
        pytest.param({"a\0b": 1}, id="NUL in a name"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param({1: 2}, id="a name that is no text"),
        pytest.param({1, 2}, id="a set"),
        pytest.param(nested(250), id="too deep"),
    ],
)
async def test_what_no_database_can_hold_is_refused_and_nothing_is_written(
    backend: Backend, value: Any, write: str
) -> None:
    async def stored() -> list[Any]:
        places = ((of, id) for of in (Collection.SCHEDULES, Collection.JOBS) for id in ("new", "tick", "a"))
        return [await backend.behind.find(of, id) for of, id in places]

    await backend.schedules.create(make_schedule("tick"))
    await bring_to(backend, JobState.RUNNING)
    before = await stored()
    with pytest.raises(InvalidInput):
        await WRITES[write](backend, value)
    assert await stored() == before
