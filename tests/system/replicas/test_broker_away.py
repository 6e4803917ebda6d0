"""Without its broker the system goes on, where MongoDB is its fallback: jobs start, and each once."""

from tests.integration.rabbitmq.wire import wire_to
from tests.system.processes import Processes, eventually

_FIRES = 10


async def test_jobs_run_while_the_broker_is_away(processes: Processes, amqp_url: str) -> None:
    async def is_back() -> bool:
        return bool((await processes.metrics())["hascheduler_broker_accepting"])

    async def is_told_of() -> bool:
        return not await is_back()

    async with wire_to(amqp_url) as wire:
        processes.environment |= {"HASCHEDULER_AMQP_URL": wire.url, "HASCHEDULER_TRANSPORT_FALLBACK": "mongo"}
        await processes.replica("one")
        await processes.processor("worker")
        await processes.schedule("tick")
        await processes.fired(_FIRES, "tick")
        wire.silent = True
        wire.reset()
        await eventually(is_told_of, "metrics say that the broker is away")
        await processes.fired(_FIRES, "tick")
        assert await is_told_of()
        wire.silent = False
        await eventually(is_back, "the broker accepts again")
        await processes.fired(_FIRES, "tick")
        await processes.settled()
    processes.assert_no_effect_twice()
    assert await processes.database.jobs.count_documents({"state": {"$ne": "succeeded"}}) == 0
    assert await processes.database.jobs.count_documents({"attempt": {"$gt": 1}}) == 0
