"""Which replica should lead which shard, so that leaders are spread evenly and few of them move.

Rendezvous hashing (Thaler and Ravishankar, A Name-Based Mapping Scheme for Rendezvous, 1996) gives each shard an order
of all replicas, in which a replica that comes or goes changes nothing between the others. Alone it may give one replica
most shards, so the load is bounded (as by Mirrokni, Thorup and Zadimoghaddam, Consistent Hashing with Bounded Loads,
2016): the first of a shard's order that has room leads it.

Preference only orders challengers. Replicas that see different neighbours prefer different ones for a while, which
costs a challenge or two: any replica may lead any shard, by its lease and its journal.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b


def preferred_leaders(shards: Sequence[str], replicas: Collection[str]) -> Mapping[str, Sequence[str]]:
    """For each shard all ``replicas`` (names that outlast a restart), the one that should lead it first.

    Each is the first of as many shards as any other, or of one more.
    """
    if not replicas:
        return dict.fromkeys(shards, ())
    least, extra = divmod(len(shards), len(replicas))
    led: Counter[str] = Counter()
    orders: dict[str, Sequence[str]] = {}
    for shard in shards:
        order = sorted(set(replicas), key=lambda replica: (_weight(shard, replica), replica), reverse=True)
        first = next(replica for replica in order if led[replica] < least or (led[replica] == least and extra > 0))
        extra -= led[first] == least
        led[first] += 1
        orders[shard] = (first, *(replica for replica in order if replica != first))
    return orders


def _weight(shard: str, replica: str) -> bytes:
    return blake2b(f"{shard}\n{replica}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
