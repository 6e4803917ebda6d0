"""Without its broker the system goes on; without a schema it can read, a replica gives up its lease."""

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


REASON = "the database has schema version 2, but this release reads 1; run another release"


async def test_a_replica_leads_only_while_it_reads_the_version_of_the_database(processes: Processes) -> None:
    replica = await processes.replica("one")
    _, term = await processes.leader()
    # As if it was raised by hand.
    await processes.database.meta.update_one(
        {"_id": "schema"}, {"$set": {"version": 2}, "$inc": {"rev": 1}}, upsert=True
    )

    async def is_left() -> bool:
        answer = await processes.http.get(replica.url + "/readyz")
        return (answer.status_code, answer.json()["reason"], (await processes.holder())[0]) == (503, REASON, "")

    await eventually(is_left, "it is not ready, and gives up its lease")
    assert '"database_version_newer"' in replica.log.read_text()
    status, out, err = await processes.command("serve", "--http-port", "0")
    assert (status, out, err) == (1, "", f"hascheduler: {REASON}\n")
    await processes.database.meta.update_one({"_id": "schema"}, {"$set": {"version": 1}, "$inc": {"rev": 1}})
    assert (await processes.leader(not_in_term=term))[0] is replica
