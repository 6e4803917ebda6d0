"""What a processor does while its home does not say how many shards there are."""

from types import SimpleNamespace
from typing import Any

import pytest
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from hascheduler.assembly_processor import ProcessorParts
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.lifecycle import database_ready
from hascheduler.model.processor import ProcessorRef
from hascheduler.mongo.work.store import MongoWorkStore
from hascheduler.shards.layout import Layout, encode_layout

TWO = encode_layout(Layout.even(["default", "0001"]))


class Home:
    """A database whose reads of the layout end as they are told to, one after the other; then there is none."""

    name = "x"

    def __init__(self, *answers: PyMongoError | dict[str, Any]) -> None:
        self._answers = list(answers)

    def __getitem__(self, collection: str) -> "Home":
        return self

    def with_options(self, **options: Any) -> "Home":
        return self

    async def find_one(self, *query: Any) -> dict[str, Any] | None:
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, PyMongoError):
            raise answer
        return answer


def parts(home: Home, shards: int = 1) -> ProcessorParts:
    settings: Any = SimpleNamespace(shards=shards, database="x", shard="default")
    other: Any = None
    return ProcessorParts(settings, [home], *[other] * 7)  # type: ignore[list-item]


@pytest.mark.parametrize("error", [AutoReconnect("gone"), OperationFailure("not authorized", 13)])
@pytest.mark.parametrize("shards", [1, 2])
async def test_one_failed_read_of_the_layout_makes_no_processor_that_of_a_single_shard(
    error: PyMongoError, shards: int
) -> None:
    with pytest.raises(StoreUnavailable, match="read the layout"):
        await parts(Home(error), shards).layout()


async def test_a_processor_reads_again_until_the_home_says_that_there_are_several() -> None:
    asked = parts(Home(AutoReconnect("gone"), AutoReconnect("gone"), TWO))

    async def read() -> None:
        await asked.layout()

    with pytest.raises(InvalidInput, match="HASCHEDULER_SHARDS: 1, and the deployment in the database 'x' has 2"):
        await database_ready(read, patience_ms=60_000)


async def test_only_a_home_without_a_layout_is_the_only_shard() -> None:
    assert await parts(Home()).layout() is None


async def test_a_processor_registers_in_no_database_that_was_not_compared() -> None:
    """That of a shard in another MongoDB which did not answer at its start."""
    tries: list[str] = []

    async def compare() -> None:
        tries.append("compared")
        if len(tries) < 2:
            raise StoreUnavailable("the database 'x' there is another one")

    class Registrations(Home):
        async def update_one(self, *update: Any, **options: Any) -> None:
            tries.append("registered")

    processor = ProcessorRef("p.1", "p", "0001", frozenset(), 1, beat=1, draining=False, parked=0)
    store = MongoWorkStore(Registrations(), 1_000, compare)  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailable, match="another one"):
        await store.register(processor)
    await store.register(processor)
    assert tries == ["compared", "compared", "registered"]
