"""MongoDB stalls, changes its primary, is torn apart, forgets its history, runs out of disk."""

import asyncio
import os
import signal
from contextlib import suppress
from typing import Any

from pymongo.errors import PyMongoError

from tests.chaos.cluster import Life
from tests.chaos.mutations import mutated_document
from tests.chaos.row import SHORT_LEASE, STRAY, Databases, Row
from tests.chaos.servers import ELECTION_TIMEOUT_MS, Member
from tests.chaos.stage import REPLICAS, Stage

_TRIES = 10
_FILLER = os.urandom(100_000)


async def _sigstop(stage: Stage) -> None:
    member = stage.mongods.members[0]
    for _ in range(stage.times(smoke=2, full=5)):
        await asyncio.sleep(2)
        began_s = stage.now_s()
        stage.mongods.signal(member, signal.SIGSTOP)
        await asyncio.sleep(stage.chance.uniform(2, 10))
        stage.mongods.signal(member, signal.SIGCONT)
        stage.excuse(began_s)
        await asyncio.sleep(8)


async def _sigkill(stage: Stage) -> None:
    member = stage.mongods.members[0]
    for _ in range(stage.times(smoke=2, full=5)):
        await asyncio.sleep(4)
        began_s = stage.now_s()
        await stage.mongods.kill(member)
        await asyncio.sleep(stage.chance.uniform(0, 4))
        await stage.mongods.start_member(member)
        await stage.mongods.has_primary()
        stage.excuse(began_s)
        await asyncio.sleep(8)


async def _primary_sigkill(stage: Stage) -> None:
    for _ in range(stage.times(smoke=2, full=6)):
        await asyncio.sleep(4)
        primary = await stage.mongods.has_primary()
        await stage.mongods.kill(primary)
        await stage.mongods.has_primary()
        await asyncio.sleep(stage.chance.uniform(1, 4))
        await stage.mongods.start_member(primary)
        await asyncio.sleep(3)


async def _step_down(stage: Stage) -> None:
    for _ in range(stage.times(smoke=3, full=6)):
        await stage.quiet(6, 15)
        await stage.mongods.step_down()
    await stage.quiet(6, 15)


async def _minority(stage: Stage) -> None:
    """The leader and the primary are on one host, which is cut off from everybody."""
    assert stage.hosts is not None
    for _ in range(stage.times(smoke=1, full=2)):
        await asyncio.sleep(3)
        leader, term, member = await _on_one_host(stage)
        began_s = stage.now_s()
        await stage.hosts.cut_off(member.host)
        stage.cluster.out_of_reach.add(leader.name)
        # Members that copy from the one that fell silent notice late, and until then nothing is acknowledged.
        await stage.mongods.commits([other for other in stage.mongods.members if other is not member])
        stage.excuse(began_s)
        stage.say(f"minority-partition: MongoDB took no writes for {stage.now_s() - began_s:.1f} s")
        await stage.leader(after_term=term)
        await stage.quiet(5, 15)
        await stage.hosts.reconnect(member.host)
        stage.cluster.out_of_reach.discard(leader.name)
        await stage.quiet(8, 10)


async def _on_one_host(stage: Stage) -> tuple[Life, int, Member]:
    """The leader, its term, and the primary, which is on the same host by then."""
    for _ in range(_TRIES):
        leader, _ = await stage.leader()
        member = stage.mongods.members[REPLICAS.index(leader.name)]
        await stage.mongods.step_up(member)
        await asyncio.sleep(2)
        still, term = await stage.leader()
        if still is leader:
            return leader, term, member
    raise AssertionError(f"not within {_TRIES} tries: a leader that stays as the primary comes to it")


async def _history_lost(stage: Stage) -> None:
    """Replicas stand still until what they have missed is no longer to be had."""
    for turn in range(stage.times(smoke=2, full=4)):
        await asyncio.sleep(2)
        leader, term = await stage.leader()
        followers = [life for life in stage.cluster.replicas.values() if life is not leader]
        still = [leader] if turn % 2 else [stage.chance.choice(followers)]
        for life in still:
            stage.cluster.freeze(life)
        await _roll_over(stage)
        if turn % 2:
            await stage.leader(after_term=term)
        for life in still:
            stage.cluster.thaw(life)
            await life.child.ready()
        # One that has been asleep leads next.
        for life in stage.cluster.replicas.values():
            if life not in still:
                await stage.cluster.kill(life)
        await asyncio.sleep(4)
        for name in REPLICAS:
            await stage.restart(name)


async def _roll_over(stage: Stage) -> None:
    """Fill the history until its beginning is younger than now; not faster than the evidence is read."""
    from_ts = (await stage.client.admin.command("ping"))["operationTime"]
    filler = stage.client["chaos-filler"]["filler"]
    oplog = stage.client["local"]["oplog.rs"]
    while True:
        await filler.insert_many([{"filler": _FILLER} for _ in range(10)])
        await stage.oplog.read()
        first: Any = await oplog.find_one(sort=[("$natural", 1)])
        if first["ts"] > from_ts:
            break
    await stage.client.drop_database("chaos-filler")


async def _dropped(stage: Stage) -> None:
    """Collections whose writers write them again by themselves."""
    database = stage.database
    for _ in range(stage.times(smoke=2, full=4)):
        for name in ("processors", "replicas", "leases"):
            await asyncio.sleep(3)
            await database[name].drop()
            await asyncio.sleep(3)


async def _malformed(stage: Stage) -> None:
    """Documents that are almost right, of every kind, by the hundred; they are taken away at the end."""
    database = stage.database
    kinds = ("jobs", "schedules", "definitions", "processors", "replicas", "journal", "leases")
    for _ in range(stage.times(smoke=3, full=10)):
        for number in range(200):
            kind = stage.chance.choice(kinds)
            found = await database[kind].find_one({"_id": {"$not": {"$regex": f"^{STRAY}"}}})
            if found is None:
                continue
            id: Any = f"{STRAY}-{stage.chance.getrandbits(40):x}-{number}"
            if kind == "journal":
                id = {"shard": id, "seq": 1}
            found.pop("idempotency_key", None)
            found.pop("request_hash", None)
            with suppress(PyMongoError):  # what MongoDB itself does not take needs nobody's attention
                await database[kind].insert_one(mutated_document({**found, "_id": id}, stage.chance))
        await stage.quiet(4, 4)
    stray = {"$or": [{"_id": {"$regex": f"^{STRAY}"}}, {"_id.shard": {"$regex": f"^{STRAY}"}}]}
    for kind in kinds:
        await database[kind].delete_many(stray)
    await database["jobs"].delete_many({"_id": {"$regex": STRAY}})
    await stage.quiet(3, 3)


async def _full_disk(stage: Stage) -> None:
    """The only member's disk is full until it gives up; then there is room again."""
    member = stage.mongods.members[0]
    for _ in range(stage.times(smoke=1, full=2)):
        await asyncio.sleep(3)
        began_s = stage.now_s()
        await _fill(stage, member)
        assert member.child is not None
        async with asyncio.timeout(60):
            while member.child.running:
                with_filler = stage.client["chaos-filler"]["filler"]
                try:
                    await with_filler.insert_one({"filler": _FILLER})
                except PyMongoError:
                    await asyncio.sleep(0.1)
        (member.home / "filler").unlink()
        await stage.mongods.start_member(member)
        await stage.mongods.has_primary()
        stage.excuse(began_s)
        await stage.client.drop_database("chaos-filler")
        await stage.quiet(8, 10)


async def _fill(stage: Stage, member: Member) -> None:
    def write() -> None:
        with (member.home / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\x00" * 1_000_000)
            except OSError:
                pass

    await asyncio.to_thread(write)


_ELECTION_S = ELECTION_TIMEOUT_MS / 1_000
ROWS = (
    Row("mongod-sigstop", "the only MongoDB stalls for up to ten seconds", _sigstop, gap_s=12.0),
    Row("mongod-sigkill", "the only MongoDB is killed and starts again", _sigkill, gap_s=12.0),
    Row(
        "primary-sigkill",
        f"the primary of three is killed; they elect after {_ELECTION_S:g} s, where MongoDB's default is 10 s",
        _primary_sigkill,
        smoke=True,
        databases=Databases.THREE,
        gap_s=_ELECTION_S + 10,
    ),
    Row(
        "primary-step-down",
        "the primary of three steps down every 15 s",
        _step_down,
        databases=Databases.THREE,
        gap_s=_ELECTION_S + 8,
    ),
    Row(
        "minority-partition",
        "the host of leader and primary is cut off from the two others",
        _minority,
        databases=Databases.THREE,
        hosts=True,
        settings=SHORT_LEASE,
        gap_s=12.0,
    ),
    Row(
        "history-lost",
        "replicas stall until the oplog has lost what they missed, and then have to lead",
        _history_lost,
        databases=Databases.TINY,
        settings=SHORT_LEASE,
        gap_s=12.0,
    ),
    Row("dropped-collection", "collections are dropped: processors, replicas, leases", _dropped, gap_s=8.0),
    Row("malformed-documents", "200 documents of every kind that are almost right, each time", _malformed, stray=True),
    Row(
        "full-disk",
        "the disk of the only MongoDB is full until it gives up",
        _full_disk,
        databases=Databases.SMALL_DISK,
        gap_s=12.0,
    ),
)
