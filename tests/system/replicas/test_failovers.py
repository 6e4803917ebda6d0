"""The account of a takeover agrees with what the test did, and with what the journal and the handlers know."""

import asyncio
import json
import signal
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx
import pytest
from pymongo.uri_parser import parse_uri

from hascheduler.embedded.daemons import Daemon
from hascheduler.model.values.instants import parse_instant
from tests.chaos.proxy import Line
from tests.system.processes import Processes, eventually
from tests.unit.telemetry.scraping import Scrape

pytestmark = [pytest.mark.timeout(300)]

EVERY_MS = 200
SCHEDULES = [f"tick-{number}" for number in range(5)]
ORDER = ("detected_at", "won_at", "began_at", "deciding_at", "first_decision_at", "first_dispatch_at", "told_at")
LEASE_MS, RENEW_DEADLINE_MS = 3_000, 2_000
"""As `tests.system.conftest` sets them."""
OUTAGE_S = 3


async def start(processes: Processes) -> None:
    await processes.together("one", "two", "three")
    await processes.processor("worker")
    for name in SCHEDULES:
        await processes.schedule(name, f"{EVERY_MS}ms")
    await fired(processes, 5)


async def fired(processes: Processes, at_least: int) -> None:
    async def enough() -> bool:
        return all(len(processes.nominal_times(name)) >= at_least for name in SCHEDULES)

    await eventually(enough, f"every schedule has fired {at_least} times")


async def listed(processes: Processes, term: int) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        items = (await processes.get("/v1/cluster/failovers"))["items"]
        return next((item for item in items if item["term"] == term), None)

    return await eventually(look, f"the account of term {term}")


def now_ms() -> int:
    return int(time.time() * 1_000)


def instant(failover: Mapping[str, Any], name: str) -> int:
    return parse_instant(failover[name])


async def check(processes: Processes, failover: Mapping[str, Any], cause: str, ended_ms: int) -> None:
    """Against the journal and the handlers; ``ended_ms`` is when the leader before was told to end."""
    assert (failover["cause"], failover["ended"]) == (cause, "caught_up")
    instants = [instant(failover, name) for name in ORDER if failover[name] is not None]
    assert instants == sorted(instants)
    assert ended_ms <= instant(failover, "detected_at")
    entries = await processes.database.journal.find().sort("_id", 1).to_list()
    [began] = [one for one in entries if one["term"] == failover["term"] and one["kind"] == "term_began"]
    assert (began["_id"]["seq"], began["holder"]) == (failover["began_seq"], failover["holder"])
    before = [one for one in entries if one["_id"]["seq"] < failover["began_seq"]]
    assert (before[-1]["term"], before[-1]["holder"]) == (failover["previous_term"], failover["previous_holder"])
    last_decision_ms = [one["at_ms"] for one in before if one["kind"] == "decisions"][-1]
    assert instant(failover, "last_decision_at") == last_decision_ms

    mine = [one for one in entries if one["term"] == failover["term"] and one["kind"] == "decisions"]
    deciding_ms = instant(failover, "deciding_at")
    rows = [(one["at_ms"], row) for one in mine for row in one["decisions"]]
    late = {
        f"fire:{row[1]}:{row[2]}": at_ms - row[2] for at_ms, row in rows if row[0] == "fire" and row[2] <= deciding_ms
    }
    assert failover["fires_late"] == len(late)
    if late:
        # Told by two clocks of the same replica, either of whole milliseconds.
        assert max(late.values()) <= failover["worst_lag_ms"] <= instant(failover, "told_at") - _oldest(late) + 1
        assert mine[0]["at_ms"] <= instant(failover, "first_decision_at")
        assert last_decision_ms == instant(failover, "first_decision_at") - failover["gap_ms"]
    for verdict in ("missed", "coalesced"):
        counts = [row[5] for _, row in rows if row[:1] == ["pass_over"] and row[2] == verdict and row[4] <= deciding_ms]
        assert failover[verdict] == sum(counts), verdict
    effects = processes.effects()
    assert all(deciding_ms <= effects[job][0]["at_ms"] for job in late if job in effects)


def _oldest(jobs: Mapping[str, object]) -> int:
    return min(int(job.rpartition(":")[2]) for job in jobs)


async def check_told(processes: Processes, failover: Mapping[str, Any]) -> None:
    """In the log and the metrics of the replica that took over, and by every replica beside the cluster."""
    winner = failover["holder"].rpartition(".")[0]
    lines = [json.loads(line) for line in (processes.folder / f"{winner}.err").read_text().splitlines()]
    [line] = [one for one in lines if one["event"] == "failover" and one["term"] == failover["term"]]
    assert {name: line[name] for name in ("cause", "gap_ms", "fires_late", "missed", "began_seq", "ended")} == {
        name: failover[name] for name in ("cause", "gap_ms", "fires_late", "missed", "began_seq", "ended")
    }
    async with httpx.AsyncClient() as http:
        told = Scrape((await http.get(f"{processes.replicas[winner].url}/metrics")).text)
    assert told.of("hascheduler_failovers_total", cause=failover["cause"]) == 1
    assert told.of("hascheduler_failover_seconds", phase="takeover") == failover["takeover_ms"] / 1_000
    assert told["hascheduler_failover_fires_late"] == failover["fires_late"]
    for name, replica in processes.replicas.items():
        if replica.running:
            await eventually(partial(_is_shown, processes, replica.url, failover), f"{name} knows of it")


async def _is_shown(processes: Processes, url: str, failover: Mapping[str, Any]) -> bool:
    return bool((await processes.http.get(f"{url}/v1/cluster")).json()["failover"] == failover)


async def end(leader: Daemon, number: signal.Signals) -> None:
    if number is signal.SIGSTOP:
        leader.signal(number)
        # It can't answer: nobody may ask it.
        leader.url = "http://127.0.0.1:9"
    elif number is signal.SIGKILL:
        await leader.kill()
    else:
        assert await leader.terminate() == 0


@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGTERM, "released"), (signal.SIGKILL, "died"), (signal.SIGSTOP, "stood_still")]
)
async def test_each_way_to_lose_a_leader_is_told_as_it_was(
    processes: Processes, number: signal.Signals, cause: str
) -> None:
    await start(processes)
    leader, term = await processes.leader()
    first = await listed(processes, term)
    assert (first["cause"], first["previous_term"], first["last_decision_at"]) == ("first", None, None)
    for name in [name for name in processes.replicas if name == leader.name]:
        # Asked last, as it is about to go.
        processes.replicas[name] = processes.replicas.pop(name)
    ended_ms = now_ms()
    await end(leader, number)
    _, next_term = await processes.leader(not_in_term=term)
    failover = await listed(processes, next_term)
    assert failover["last_sign_at"] is not None
    await check(processes, failover, cause, ended_ms)
    if number is signal.SIGSTOP:
        assert failover["detection_ms"] >= LEASE_MS - RENEW_DEADLINE_MS
        processes.replicas.pop(leader.name)
        leader.signal(signal.SIGKILL)
        await leader.wait()
    await check_told(processes, failover)
    items = (await processes.get("/v1/cluster/failovers"))["items"]
    assert [item["term"] for item in items] == [next_term, term]
    assert items[-1] == first, "what the leader before told of itself is still there"


async def test_after_a_time_without_replicas_the_account_is_of_all_of_it(processes: Processes) -> None:
    await start(processes)
    for name, catch_up in (("none", "none"), ("latest", "latest")):
        misfire = {"grace": "1s", "catch_up": catch_up}
        trigger = {"type": "interval", "every": f"{EVERY_MS}ms"}
        body = {"name": name, "trigger": trigger, "misfire": misfire, "job": {"definition": "log", "target": name}}
        await processes.post("/v1/schedules", body)
    await eventually(lambda: _have_fired(processes, "none", "latest"), "both fire")
    leader, term = await processes.leader()
    for replica in list(processes.replicas.values()):
        if replica is not leader:
            await replica.kill()
    await leader.kill()
    ended_ms = now_ms()
    # Real time has to pass: that it does is what is told of.
    await asyncio.sleep(OUTAGE_S)
    await processes.together("one", "two")
    _, next_term = await processes.leader(not_in_term=term)
    failover = await listed(processes, next_term)
    # The holder's end was proved to nobody, as nobody was there.
    await check(processes, failover, "lapsed", ended_ms)
    assert failover["last_sign_at"] is None
    assert failover["detection_ms"] == instant(failover, "detected_at") - instant(failover, "last_decision_at")
    assert failover["gap_ms"] >= OUTAGE_S * 1_000
    assert failover["missed"] > 0
    assert failover["coalesced"] > 0
    await check_told(processes, failover)


async def _have_fired(processes: Processes, *names: str) -> bool:
    return all(processes.nominal_times(name) for name in names)


async def test_a_leader_that_loses_mongodb_alone_is_followed_long_before_its_lease_runs_out(
    processes: Processes, mongodb_uri: str
) -> None:
    """Its process lives on and can be reached, so nothing proves it dead."""
    lease = {"HASCHEDULER_LEASE_DURATION": "600s", "HASCHEDULER_RENEW_DEADLINE": "500s"}
    host, port = parse_uri(mongodb_uri)["nodelist"][0]
    line = Line((host, port))
    await line.open("127.0.0.1")
    try:
        through = f"mongodb://127.0.0.1:{line.port}/?directConnection=true"
        await processes.replica("one", HASCHEDULER_MONGODB_URI=through, **lease)
        leader, term = await processes.leader()
        await processes.together("two", "three", **lease)
        await processes.processor("worker")
        for name in SCHEDULES:
            await processes.schedule(name, f"{EVERY_MS}ms")
        await fired(processes, 5)
        line.hold()
        # Asked last, as it can't answer.
        processes.replicas[leader.name] = processes.replicas.pop(leader.name)
        _, next_term = await processes.leader(not_in_term=term)
        assert (await listed(processes, next_term))["cause"] == "stood_still"
        await line.mend()
        # The one before is back while it still trusts its lease: the journal keeps it from doing anything.
        await fired(processes, 20)
        processes.assert_no_effect_twice()
        await processes.assert_terms_never_return()
    finally:
        await line.close()
