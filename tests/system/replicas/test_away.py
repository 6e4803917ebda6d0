"""Without a schema it can read, a replica gives up its lease."""

from tests.system.processes import Processes, eventually

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
