"""Prefer a leader for each shard, so that leaders are spread evenly and few of them move.

Rendezvous hashing (Thaler and Ravishankar, A Name-Based Mapping Scheme for Rendezvous, 1996) gives each shard an order
of all replicas, in which a replica that comes or goes changes nothing between the others. Alone it may give one replica
most shards, so the load is bounded (as by Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads,
2016): the first of a shard's order that has room leads it.

Of many shards a replica follows only those for which it is among the first of that order (`candidates_of`); the first
of these with room leads, and if none has room, the one that leads the fewest.

Preference only orders challengers. Replicas that see different neighbours prefer different ones for a while, which
costs a challenge or two: any replica may lead any shard, by its lease and its journal.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b


def candidates_of(shards: Sequence[str], replicas: Collection[str], most: int) -> Mapping[str, Sequence[str]]:
    """Return for each shard the ``most`` replicas that rank highest for it, in order; all if ``most`` is 0.

    All replicas are candidates of the first shard, which is the home.
    """
    count = most or len(replicas)
    return {shard: _order(shard, replicas)[: count if place else None] for place, shard in enumerate(shards)}


def preferred_leaders(shards: Sequence[str], replicas: Collection[str], most: int = 0) -> Mapping[str, Sequence[str]]:
    """Return for each shard its candidates among ``replicas`` (names that survive a restart), the preferred one first.

    If all replicas are candidates of all shards (``most`` 0), they are first of equally many shards, or of one more.
    """
    if not replicas:
        return dict.fromkeys(shards, ())
    least, extra = divmod(len(shards), len(set(replicas)))
    led: Counter[str] = Counter()
    orders: dict[str, Sequence[str]] = {}
    for shard, order in candidates_of(shards, replicas, most).items():
        roomy = (replica for replica in order if led[replica] < least or (led[replica] == least and extra > 0))
        first = next(roomy, None) or min(order, key=lambda replica: led[replica])
        extra -= led[first] == least
        led[first] += 1
        orders[shard] = (first, *(replica for replica in order if replica != first))
    return orders


def _order(shard: str, replicas: Collection[str]) -> Sequence[str]:
    return sorted(set(replicas), key=lambda replica: (_weight(shard, replica), replica), reverse=True)


def _weight(shard: str, replica: str) -> bytes:
    return blake2b(f"{shard}\n{replica}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
