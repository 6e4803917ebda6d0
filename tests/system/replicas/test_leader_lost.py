"""Whatever happens to the leader, every nominal time has its effect, once, and the report of the takeover is true."""

import asyncio
import signal
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from hascheduler.embedded.children import Daemon
from hascheduler.model.values.instants import parse_instant
from tests.system.processes import Processes, eventually

pytestmark = [pytest.mark.timeout(300)]

EVERY_MS = 200
SCHEDULES = {f"tick-{number}": EVERY_MS for number in range(5)}
LEASE_MS, RENEW_DEADLINE_MS = 3_000, 2_000
"""As `tests.system.conftest` sets them."""


@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGTERM, "released"), (signal.SIGKILL, "died"), (signal.SIGSTOP, "stood_still")]
)
async def test_each_way_to_lose_a_leader_misses_nothing_and_is_told_as_it_was(
    processes: Processes, number: signal.Signals, cause: str
) -> None:
    await processes.together("one", "two", "three")
    await processes.processor("worker")
    for name in SCHEDULES:
        await processes.schedule(name, f"{EVERY_MS}ms")
    await processes.fired(5, *SCHEDULES)
    leader, term = await processes.leader()
    await listed(processes, term)
    # On a busy machine the first leader may have been followed already.
    before = (await processes.get("/v1/cluster/failovers"))["items"]
    assert (before[-1]["cause"], before[-1]["gap_ms"]) == ("first", None)
    # Asked last, as it is about to go.
    processes.replicas[leader.name] = processes.replicas.pop(leader.name)
    url = leader.url
    await end(leader, number)
    _, next_term = await processes.leader(not_in_term=term)
    failover = await listed(processes, next_term)
    await check_report(processes, failover, cause)
    assert (await processes.get("/v1/cluster/failovers"))["items"] == [failover, *before]
    if number is signal.SIGTERM:
        assert next_term == term + 1
    if number is signal.SIGSTOP:
        assert failover["gap_ms"] >= LEASE_MS - RENEW_DEADLINE_MS
        await processes.fired(20, *SCHEDULES)
        leader.signal(signal.SIGCONT)
        leader.url = url
        await eventually(lambda: follows(processes, leader, term), "the old leader follows")
    await processes.fired(10, *SCHEDULES)
    await processes.assert_all_fired_once(SCHEDULES, 15)


async def follows(processes: Processes, replica: Daemon, term: int) -> bool:
    cluster = (await processes.http.get(f"{replica.url}/v1/cluster")).json()
    return bool(cluster["ready"]) and cluster["leader"]["term"] > term


async def listed(processes: Processes, term: int) -> dict[str, Any]:
    async def find() -> dict[str, Any] | None:
        items = (await processes.get("/v1/cluster/failovers"))["items"]
        return next((item for item in items if item["term"] == term and item["first_decision_at"]), None)

    return await eventually(find, f"the report of term {term}")


async def check_report(processes: Processes, failover: Mapping[str, Any], cause: str) -> None:
    """Against the journal, and against the log and the metrics of the replica that took over."""
    assert failover["cause"] == cause
    entries = await processes.database.journal.find().sort("_id", 1).to_list()
    [began] = [one for one in entries if one["term"] == failover["term"] and one["kind"] == "term_began"]
    assert began["holder"] == failover["holder"]
    deciding_ms = parse_instant(failover["deciding_at"])
    last_ms = [one["at_ms"] for one in entries if one["term"] < failover["term"]][-1]
    first_ms = next(one["at_ms"] for one in entries if one["term"] == failover["term"] and one["kind"] == "decisions")
    assert began["at_ms"] <= deciding_ms
    # A replica that came later knows the last renewal alone.
    assert 0 <= failover["gap_ms"] <= deciding_ms - last_ms + RENEW_DEADLINE_MS
    assert deciding_ms <= first_ms <= parse_instant(failover["first_decision_at"])
    winner = failover["holder"].rpartition(".")[0]
    [line] = [one for one in processes.logged("failover", winner) if one["term"] == failover["term"]]
    assert (line["cause"], line["gap_ms"]) == (cause, failover["gap_ms"])
    scraped = await processes.metrics(processes.replicas[winner].url)
    assert scraped.of("hascheduler_failovers_total", cause=cause) == 1
    assert scraped["hascheduler_failover_seconds"] == failover["gap_ms"] / 1_000


async def end(leader: Daemon, number: signal.Signals) -> None:
    if number is signal.SIGSTOP:
        leader.signal(number)
        # It can't answer: nobody may ask it.
        leader.url = "http://127.0.0.1:9"
    elif number is signal.SIGKILL:
        await leader.kill()
    else:
        assert await leader.terminate() == 0


async def test_who_waits_at_a_standby_is_answered_though_the_leader_dies(processes: Processes) -> None:
    await processes.together("one", "two")
    await processes.processor("worker")
    leader, term = await processes.leader()
    [standby] = [replica for replica in processes.replicas.values() if replica is not leader]
    body = {"definition": "sleep", "payload": {"seconds": 1.5}, "mode": "on_demand"}
    async with httpx2.AsyncClient(timeout=40) as client:
        asking = asyncio.create_task(client.post(f"{standby.url}/v1/jobs?wait=30", json=body))

        async def runs() -> bool:
            return bool((await processes.get("/v1/jobs?state=running"))["items"])

        await eventually(runs, "the job runs")
        await leader.kill()
        answer = await asking
    assert (answer.status_code, answer.json()["result"]) == (200, {"slept": 1.5})
    await processes.leader(not_in_term=term)


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
