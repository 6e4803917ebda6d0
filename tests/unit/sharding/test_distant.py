"""What a replica says of shards that others follow: what they told, whom to ask, and never as if it had seen it."""

from dataclasses import replace
from typing import Any

import pytest

from hascheduler.errors import NotFollowedHere
from hascheduler.model.collection import Collection
from hascheduler.model.replica import NAMES_MAX, LedShard, ReplicaStatus, ShardReport
from hascheduler.model.routing import Routing, with_slot
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import Cluster, LeaderLag
from hascheduler.sharding.distant import DistantView, LookingWaiter
from hascheduler.sharding.places import ShardPlaces
from hascheduler.sharding.reports import ShardReports, report_of
from hascheduler.sharding.view import ShardedView
from hascheduler.testing.memory.database import MemoryConnection, MemoryDatabase
from tests.doubles.shards import MemoryNameStore
from tests.unit.api.doubles import StandingView

NAMES = ("default", "0001", "0002")
ROUTING = Routing.even(NAMES)
TENANTS = [next(f"t{n}" for n in range(999) if ROUTING.index_of(f"t{n}") == index) for index in range(3)]
LED = LedShard(
    9,
    since_ms=WallMs(5),
    journal_seq=77,
    lag_ms=30,
    jobs={"pending": 4, "running": 1},
    runnable=3,
    schedules={"active": 2, "paused": 1},
    processors={"live": 3},
    slots={"free": 8},
    events_per_s={"started": 6},
    definitions={"log": {"pending": 3}, "": {"pending": 1, "running": 1}},
    unschedulable=("job:x",),
    calendars=("holidays",),
)


class Known(StandingView):
    """With the counts that a cluster has."""

    def cluster(self) -> Cluster:
        return replace(super().cluster(), counts={"definitions": 1, "pending": 0, "schedules": 0})


class Room:
    """A replica that follows the home and shard 0001; of shard 0002 it has heard this."""

    def __init__(self, led: LedShard | None = LED) -> None:
        report = ShardReport(ready=True, led=led)
        self.live = [
            ReplicaStatus("b.1", "b", 1, WallMs(0), "b:80", "b:9", True, 1, "", "", 0, followed={"0002": report})
        ]
        self.home, self.other = Known(), Known(leading=False)
        self.distant = DistantView("0002", ShardReports(lambda: self.live), self.home)
        self.distant.holds_are_read = True
        places = ShardPlaces(ROUTING, MemoryNameStore(MemoryConnection(MemoryDatabase())))
        self.view = ShardedView(places, [self.home, self.other, self.distant], followers=lambda _: ["b"])


def test_what_is_not_seen_is_said() -> None:
    room = Room()
    assert list(room.view.unseen_shards()) == ["0002"]
    assert [list(room.view.unseen_shards(tenant)) for tenant in TENANTS] == [[], [], ["0002"]]
    assert room.view.gauges().shards_followed == 2


def test_the_cluster_shows_what_its_leader_told() -> None:
    *_, shard = Room().view.cluster().shards
    assert (shard.name, shard.followed, shard.followers, shard.unready_reason) == ("0002", False, ["b"], "")
    assert shard.lease is not None
    assert (shard.lease.holder, shard.lease.term) == ("b.1", 9)
    assert (shard.counts["pending"], shard.counts["schedules"], shard.processors) == (4, 3, 3)


def test_a_shard_of_which_nobody_tells_holds_no_readiness_up_and_says_so() -> None:
    room = Room(None)
    assert room.view.ready
    *_, shard = room.view.cluster().shards
    assert shard.lease is None
    assert shard.unready_reason == "no replica that leads it tells of it"


def test_counts_are_added_up_and_of_one_tenant_or_a_definition_that_is_cut_off_others_are_asked() -> None:
    room = Room()
    assert (room.view.pending(), room.view.runnable()) == (4, 3)
    assert room.view.live_jobs() == {"pending": 4, "running": 1}
    assert room.view.live_jobs(definition="log") == {"pending": 3}
    assert room.view.gauges().events_per_s == {"started": 6}
    for asked in ({"definition": "rare"}, {"tenant": TENANTS[2]}):
        with pytest.raises(NotFollowedHere, match="0002"):
            room.view.live_jobs(**asked)
    assert "job:x" in room.view.unschedulable()
    assert room.view.schedules_on("holidays") == ["(of shard 0002)"]


def test_of_a_processor_there_a_follower_is_asked_and_of_others_nobody() -> None:
    room = Room()
    with pytest.raises(NotFollowedHere, match="0002"):
        room.view.processor("http:x@0002")
    assert room.view.processor("http:x@0001") is None
    with pytest.raises(NotFollowedHere), room.distant.dispatch_waiter("http:x@0002"):
        pass


def test_a_processor_goes_to_the_neediest_shard_by_what_is_told() -> None:
    room = Room()
    assert room.view.shard_for(frozenset({"log"})) == "0002"
    room.live = []
    room.other.live["log", None] = {"pending": 9}
    assert room.view.shard_for(frozenset({"log"})) == "0001"


async def test_an_end_is_looked_for_less_and_less_often() -> None:
    room = Room()
    with room.view.job_end_waiter(with_slot("job:1", TENANTS[2])) as waiter:
        assert isinstance(waiter, LookingWaiter)
        assert await waiter.wait()


class Followed:
    """A shard that this replica follows and leads."""

    def __init__(self, definitions: int, *, leading: bool = True) -> None:
        self.view: Any = StandingView(leading=leading, leader_lag=LeaderLag(7, 3))
        self.definitions = definitions

    def nouns(self, collection: Collection) -> dict[str, Any]:
        return {"partition/07": 1, "all": 2}

    def live_jobs(self) -> dict[str, dict[str, int]]:
        return {f"d{number:04d}": {"pending": number} for number in range(self.definitions)}

    def short_of(self) -> frozenset[str]:
        return frozenset({"all"})

    def kept_aside(self, slot: int) -> int:
        return slot


def test_a_leader_tells_of_the_whole_and_cuts_off_what_could_grow() -> None:
    led = report_of(Followed(3 * NAMES_MAX)).led
    assert led is not None
    assert (led.term, led.lag_ms, led.short_of, led.kept_aside) == (7, 7, ("all",), {"partition/07": 7})
    assert len(led.definitions) == NAMES_MAX + 1
    assert sum(counts["pending"] for counts in led.definitions.values()) == sum(range(3 * NAMES_MAX))
    assert min(number for name in led.definitions if name for number in led.definitions[name].values()) == 2 * NAMES_MAX


def test_who_does_not_lead_tells_that_it_follows() -> None:
    assert report_of(Followed(1, leading=False), leaving=True) == ShardReport(ready=True, leaving=True)
