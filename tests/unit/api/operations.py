"""Runs operations to their end as a replica would, a slice at a time and without its rests."""

from typing import Any
from unittest.mock import patch

from hascheduler.api.operations.runner import OperationRunner
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World

REPLICA = "replica-1.aa"


def runner_of(world: World, replica_id: str = REPLICA) -> OperationRunner:
    return OperationRunner(world.services(), replica_id, look_every_ms=0)


async def turns(runner: OperationRunner, count: int = 1) -> None:
    with (
        patch("hascheduler.api.operations.runner._REST_LEAST_S", 0),
        patch("hascheduler.api.operations.runner._LATE_REST_S", 0),
        patch("hascheduler.api.operations.runner._REST_MOST_S", 0),
    ):
        for _ in range(count):
            await runner.turn()


def stored(world: World, id: str) -> dict[str, Any]:
    return world.stored(Collection.OPERATIONS, id)
