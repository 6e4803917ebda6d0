"""In which shard a processor is of most use: a pure decision, from what it does itself and the demand in each shard.

============  =================================================  ==================================================
it is         it goes                                            when
============  =================================================  ==================================================
starting      where jobs wait that nobody takes; else where      at once
              the fewest slots are
just started  to a shard that nobody serves, from one that       after `SETTLE_MS`, and until `SPREAD_MS`
              others serve too
registering   where jobs wait that nobody takes, then where the  at once
over HTTP     most have no slot; else where the fewest slots are
idle          where jobs have no slot, the unserved first, then  after `IDLE_MS` without work, and `REST_MS` after its
              the most                                           last move
idle          to a shard that nobody serves, from one that       after `SPREAD_MS` without work
              others serve too
busy          where jobs wait that nobody takes, to the shard    after `TURN_MS` in its shard
              that it left the longest time ago
============  =================================================  ==================================================

What must hold:

* Nothing starves, also with fewer processors than shards: a busy one goes round all shards that nobody serves.
* Those that start at one moment do not see each other, and may all begin in one shard: each looks again soon after.
* Processors do not change places for ever. Of those that could go from one shard, they go one after the other, in the
  order of their ids, so that the second one sees that the first has gone; the last one of a shard waits until others
  had their turn. A shard where jobs waited and none came is *barren*: jobs there wait for something else than slots,
  and for `BARREN_MS` it is passed over.
* One that speaks HTTP decides nothing: a replica does it for it, by the same rules
  (`hascheduler.api.admission.worker_moves`), and where it registers it gets to where `next_shard` would have it go.
* All ties are broken by a hash of the processor's id, so that many spread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from hascheduler.ports.demand import Demand

IDLE_MS = 1_000
REST_MS = 5_000
SETTLE_MS = 1_000
"""By then those that started together are registered."""
SPREAD_MS = 5_000
TURN_MS = 10_000
BARREN_MS = 30_000
_STAGGER_MS = 3_000
"""Between two busy ones that go from one shard: time for the first to be seen where it went."""
_STAGGERED_MAX = 5
JITTER_MS_MAX = 1_000
"""Added to all spans, another with each move, so that those that began together do not look together."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a processor is and what it does; all times are of its monotonic clock."""

    id: str
    """By which it is registered there."""
    at: int
    since_ms: int
    idle_since_ms: int | None
    """None: it has work."""
    moved: bool = False
    """Whether it came from another shard."""
    left_at_ms: Mapping[int, int] = field(default_factory=dict)
    """When it was last in the shards that it has been in."""
    barren_until_ms: Mapping[int, int] = field(default_factory=dict)


def first_shard(id: str, shards: int, demands: Sequence[Demand]) -> int:
    """Where to begin; any shard where none answers."""
    unserved = [demand for demand in demands if demand.unserved]
    fewest = min((demand.slots for demand in demands), default=0)
    best = unserved or [demand for demand in demands if demand.slots == fewest]
    return min([demand.shard for demand in best] or range(shards), key=lambda shard: _tie(id, shard))


def shard_in_need(now_ms: int, standing: Standing, demands: Sequence[Demand]) -> int | None:
    """Where one that registers over HTTP is of most use, and should go; None where no shard answers.

    ``standing`` has no place yet: its ``at`` is no shard's.
    """
    if not demands:
        return None
    fertile = _fertile(now_ms, standing, demands)
    unserved = [demand.shard for demand in fertile if demand.unserved]
    if unserved:
        return _left_the_longest_ago(standing, unserved)
    unmet = [demand for demand in fertile if demand.unmet]
    if unmet:
        return min(unmet, key=lambda demand: (-demand.unmet, _tie(standing.id, demand.shard))).shard
    return min(demands, key=lambda demand: (demand.slots, _tie(standing.id, demand.shard))).shard


def is_due(now_ms: int, standing: Standing, jitter_ms: int) -> bool:
    """Whether any demand could make it go: else there is no need to look."""
    return (
        is_settling(now_ms, standing, jitter_ms)
        or _idle_is_due(now_ms, standing, jitter_ms)
        or now_ms - standing.since_ms >= TURN_MS + jitter_ms
    )


def is_settling(now_ms: int, standing: Standing, jitter_ms: int) -> bool:
    """Whether it has just started, and may see now who started with it."""
    return not standing.moved and SETTLE_MS + jitter_ms <= now_ms - standing.since_ms < SPREAD_MS


def next_shard(now_ms: int, standing: Standing, demands: Sequence[Demand], jitter_ms: int) -> int | None:
    """Where to go now; None: stay."""
    here = next((demand for demand in demands if demand.shard == standing.at), Demand(standing.at))
    elsewhere = [demand for demand in demands if demand.shard != standing.at]
    fertile = _fertile(now_ms, standing, elsewhere)
    if is_settling(now_ms, standing, jitter_ms) and (empty := _empty_shard(standing, here, fertile)) is not None:
        return empty
    if _idle_is_due(now_ms, standing, jitter_ms):
        wanted = [demand for demand in fertile if demand.unmet]
        if wanted:
            return min(
                wanted, key=lambda demand: (not demand.unserved, -demand.unmet, _tie(standing.id, demand.shard))
            ).shard
        return _spread(now_ms, standing, here, fertile, jitter_ms)
    unserved = [demand.shard for demand in fertile if demand.unserved]
    if unserved and now_ms - standing.since_ms >= _turn_ms(standing, here, elsewhere) + jitter_ms:
        return _left_the_longest_ago(standing, unserved)
    return None


def is_wanted_elsewhere(now_ms: int, standing: Standing, demands: Sequence[Demand]) -> bool:
    """Whether jobs still wait in another shard that nobody takes: what made a busy one go."""
    elsewhere = [demand for demand in demands if demand.shard != standing.at]
    return any(demand.unserved for demand in _fertile(now_ms, standing, elsewhere))


def _fertile(now_ms: int, standing: Standing, demands: Sequence[Demand]) -> Sequence[Demand]:
    return [each for each in demands if standing.barren_until_ms.get(each.shard, now_ms) <= now_ms]


def _left_the_longest_ago(standing: Standing, shards: Sequence[int]) -> int:
    never = -1
    return min(shards, key=lambda shard: (standing.left_at_ms.get(shard, never), _tie(standing.id, shard)))


def _idle_is_due(now_ms: int, standing: Standing, jitter_ms: int) -> bool:
    if standing.idle_since_ms is None or now_ms - standing.idle_since_ms < IDLE_MS + jitter_ms:
        return False
    return not standing.moved or now_ms - standing.since_ms >= REST_MS + jitter_ms


def _spread(now_ms: int, standing: Standing, here: Demand, fertile: Sequence[Demand], jitter_ms: int) -> int | None:
    if standing.idle_since_ms is None or now_ms - standing.idle_since_ms < SPREAD_MS + jitter_ms:
        return None
    return _empty_shard(standing, here, fertile)


def _empty_shard(standing: Standing, here: Demand, fertile: Sequence[Demand]) -> int | None:
    """One that nobody serves, for the last by id of those that are here; the first one stays for certain."""
    if not here.servers or any(id > standing.id for id in here.servers):
        return None
    empty = [demand.shard for demand in fertile if not demand.servers]
    return min(empty, key=lambda shard: _tie(standing.id, shard), default=None)


def _turn_ms(standing: Standing, here: Demand, elsewhere: Sequence[Demand]) -> int:
    """How long a busy one stays at least: the longer, the more others should go before it."""
    if here.servers:
        before = sum(id > standing.id for id in here.servers)
        return TURN_MS + _STAGGER_MS * min(before, _STAGGERED_MAX)
    crowded = max((len(demand.servers) for demand in elsewhere), default=0)
    return TURN_MS + _STAGGER_MS * min(max(crowded - 1, 0), _STAGGERED_MAX)


def _tie(id: str, shard: int) -> bytes:
    return blake2b(f"{id}/{shard}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
