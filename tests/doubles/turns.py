"""The shard whose turn it is for each small cap, in memory."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from hascheduler.shards.turns import CapTurn


class MemoryTurnStore:
    """A `hascheduler.shards.turns.MongoTurnStore` in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, CapTurn] = {}

    async def read(self, keys: Collection[str], owners: Collection[str]) -> Sequence[CapTurn]:
        return [each for each in self.stored.values() if each.key in keys or (each.owner in owners and each.wanted)]

    async def want(self, key: str, shard: str, first: str) -> None:
        turn = self.stored.get(key, CapTurn(key, 1, first))
        self.stored[key] = replace(turn, wanted=turn.wanted | {shard})

    async def replace(self, before: CapTurn, after: CapTurn) -> bool:
        turn = self.stored.get(before.key)
        if turn is None or turn.rev != before.rev:
            return False
        wanted = turn.wanted if after.owner == turn.owner else turn.wanted - {after.owner}
        self.stored[after.key] = replace(after, wanted=wanted)
        return True
