"""Several shards: partitions of tenants move while leaders end, and one shard's database answers no more."""

import asyncio
from collections.abc import Sequence

from hascheduler.model.collection import Collection
from hascheduler.model.leadership import EntryKind
from hascheduler.model.partition import partition_of
from hascheduler.mongo.connection import open_database
from hascheduler.shards.home import LayoutStore
from hascheduler.shards.layout import Layout
from hascheduler.simulate.report import percentile
from tests.chaos.evidence import decisions
from tests.chaos.row import SHORT_LEASE, Row
from tests.chaos.stage import Stage
from tests.chaos.users import LoadPlan
from tests.chaos.waiting import eventually
from tests.checkers.evidence import Commit

_WAITING = 10
"""Jobs of each tenant that moves: of all together more than can run at once."""
_AT_REST_LIMIT_S = 150.0
"""A transaction whose process is gone is MongoDB's for a minute, and half a minute until it looks."""
_BEFORE_S = 6.0
_UNDER_WAY_S = 1.0
"""What was on its way as the database stopped may still be carried out."""
_AS_LATE_S = 0.5
"""By so much the fires of other shards may come later than before, on a machine that has other things to do."""


async def _partitions_move_leaders_die(stage: Stage) -> None:
    """The first tenant of each shard stays, so that each shard has something to decide; the others move."""
    moving = stage.load.tenants[stage.row.shards :]
    store = LayoutStore(open_database(stage.client, stage.cluster.database))
    for turn in range(stage.times(smoke=2, full=8)):
        async with asyncio.timeout(_AT_REST_LIMIT_S):
            await asyncio.gather(*(stage.load.submit("slow", tenant=tenant) for tenant in [*moving] * _WAITING))
        source, target = await _begin_to_move(stage, store, moving)
        await asyncio.sleep(stage.chance.uniform(0.0, 0.5))
        lost = stage.chance.choice((0, source, target))
        if turn % 3 == 2:
            leader = await stage.overtake(stage.cluster.freeze, lost)
            await asyncio.sleep(stage.chance.uniform(0.1, 2.0))
            stage.cluster.thaw(leader)
            await leader.child.ready()
        else:
            await stage.lose_leader(stage.cluster.kill, shard=lost)
        await _at_rest(store)
    stage.say(f"partitions-move-leaders-die: the layout has changed {(await _layout(store)).epoch} times")


async def _begin_to_move(stage: Stage, store: LayoutStore, tenants: Sequence[str]) -> tuple[int, int]:
    """Each to another shard than it is in; of one of them where it was and where it goes."""
    while True:
        layout = await _layout(store)
        moves = {
            partition_of(tenant): stage.chance.choice(
                [index for index in range(len(layout.shards)) if index != layout.index_of(tenant)]
            )
            for tenant in tenants
        }
        if await store.replace(layout.epoch, layout.beginning(moves)):
            partition = partition_of(stage.chance.choice(tenants))
            return layout.shard_of[partition], moves[partition]


async def _layout(store: LayoutStore) -> Layout:
    layout = await store.get()
    assert layout is not None
    return layout


async def _at_rest(store: LayoutStore) -> None:
    async def find() -> bool:
        layout = await _layout(store)
        return not layout.moving and not layout.leaving

    await eventually(find, "all partitions have arrived, with all that is of them", _AT_REST_LIMIT_S)


async def _one_database_stopped(stage: Stage) -> None:
    """Not that of the home: what is written there waits for it."""
    for _ in range(stage.times(smoke=1, full=4)):
        await asyncio.sleep(_BEFORE_S)
        shard = stage.chance.randrange(1, stage.row.shards)
        began_s = stage.now_s()
        for line in stage.to_mongodb.values():
            line.hang(stage.cluster.databases[shard])
        await asyncio.sleep(stage.chance.uniform(6, 10))
        for line in stage.to_mongodb.values():
            line.heal()
        ended_s = stage.now_s()
        await _decides_after(stage, shard, ended_s)
        stage.excuse(began_s, shard=shard)
        await asyncio.sleep(4)
        await stage.oplog.read()
        decided = decisions(stage.oplog.commits_of[stage.cluster.databases[shard]])
        if any(began_s + _UNDER_WAY_S < at_s < ended_s for at_s, _ in decided):
            raise AssertionError(f"shard {shard} went on, though its database answered nobody")
        for other in range(stage.row.shards):
            if other != shard:
                _as_punctual(stage, other, began_s, ended_s)


async def _decides_after(stage: Stage, shard: int, at_s: float) -> None:
    journal = stage.client[stage.cluster.databases[shard]][Collection.JOURNAL.value]
    later = {"at_ms": {"$gt": stage.cluster.epoch_ms + int(at_s * 1_000)}, "kind": EntryKind.DECISIONS.value}

    async def find() -> bool:
        return await journal.find_one(later) is not None

    await eventually(find, f"decisions in shard {shard}, whose database answers again")


def _as_punctual(stage: Stage, shard: int, began_s: float, ended_s: float) -> None:
    """The fires of that shard came as they had come before."""
    commits = stage.oplog.commits_of[stage.cluster.databases[shard]]
    before = _late_ms(commits, stage.cluster.epoch_ms, began_s - _BEFORE_S, began_s)
    meanwhile = _late_ms(commits, stage.cluster.epoch_ms, began_s, ended_s)
    stage.say(
        f"one-shards-database-stopped: fires of shard {shard} were late by {percentile(before, 99)} ms (p99),"
        f" meanwhile by {percentile(meanwhile, 99)} ms"
    )
    bound_ms = max(2 * percentile(before, 99), percentile(before, 99) + int(1_000 * _AS_LATE_S))
    if percentile(meanwhile, 99) > (4 * bound_ms if stage.smoke else bound_ms):
        raise AssertionError(
            f"fires of shard {shard} came {percentile(meanwhile, 99)} ms late (p99), and {percentile(before, 99)} ms"
            " before another shard's database stopped"
        )


def _late_ms(commits: Sequence[Commit], epoch_ms: int, from_s: float, to_s: float) -> list[int]:
    """By how many ms the jobs of the nominal times in between came later than those."""
    return [
        int(1_000 * commit.at_s) - (commit.after["nominal_ms"] - epoch_ms)
        for commit in commits
        if commit.collection is Collection.JOBS
        and commit.before is None
        and commit.after is not None
        and commit.after["nominal_ms"] is not None
        and from_s <= (commit.after["nominal_ms"] - epoch_ms) / 1_000 <= to_s
    ]


ROWS = (
    Row(
        "partitions-move-leaders-die",
        "partitions with schedules and waiting jobs move between four shards while leaders are killed and stall",
        _partitions_move_leaders_die,
        shards=4,
        partitions_move=True,
        # Those that submit for tenants who move ask again and again.
        load=LoadPlan(schedules=40, submits_per_s=6),
        settings={**SHORT_LEASE, "HASCHEDULER_REBALANCE_AFTER": "1s"},
        # One that stalls in the moment it takes over has shown no life: its lease of 4 s runs out first.
        gap_s=6.0,
    ),
    Row(
        "one-shards-database-stopped",
        "of four shards the database of one is silent for up to ten seconds; the others go on",
        _one_database_stopped,
        shards=4,
        lines=True,
    ),
)
