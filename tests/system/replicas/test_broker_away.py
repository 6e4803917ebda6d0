"""Without its broker the system goes on, where MongoDB is its fallback: jobs start, and each once."""

from tests.integration.rabbitmq.wire import wire_to
from tests.system.processes import Processes, eventually

_FIRES = 10


async def test_jobs_run_while_the_broker_is_away(processes: Processes, amqp_url: str) -> None:
    async with wire_to(amqp_url) as wire:
        processes.environment |= {"HASCHEDULER_AMQP_URL": wire.url, "HASCHEDULER_TRANSPORT_FALLBACK": "mongo"}
        await processes.replica("one")
        await processes.processor("worker")
        await processes.schedule("tick")
        await _fires(processes)
        wire.silent = True
        wire.cut()
        await _accepts(processes, "0")
        await _fires(processes)
        await _accepts(processes, "0")
        wire.silent = False
        await _accepts(processes, "1")
        await _fires(processes)
        await processes.settled()
    processes.assert_no_effect_twice()
    assert await processes.database.jobs.count_documents({"state": {"$ne": "succeeded"}}) == 0
    assert await processes.database.jobs.count_documents({"attempt": {"$gt": 1}}) == 0


async def _fires(processes: Processes) -> None:
    goal = len(processes.effects()) + _FIRES

    async def enough() -> bool:
        return len(processes.effects()) >= goal

    await eventually(enough, f"it fires {_FIRES} times more")


async def _accepts(processes: Processes, value: str) -> None:
    """What metrics say of the broker, which is what alerts are about."""

    async def look() -> bool:
        text = (await processes.http.get(f"{processes.any_url()}/metrics")).text
        return f"hascheduler_broker_accepting {value}.0" in text

    await eventually(look, f"the broker accepts: {value}")
