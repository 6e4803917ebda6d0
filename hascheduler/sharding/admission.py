"""Whether a shard may take one more job: its own admission control says so, from what its own replica sees."""

from collections.abc import Sequence

from hascheduler.errors import Overloaded
from hascheduler.ports import Admission
from hascheduler.ports.jobs import Path
from hascheduler.sharding.places import ShardPlaces


class ShardedAdmission:
    """`hascheduler.ports.Admission`. An overloaded shard refuses what is its own, and nothing of the others."""

    def __init__(self, places: ShardPlaces, shards: Sequence[Admission]) -> None:
        self._places = places
        self._shards = shards
        self._open = 0
        """Of the shards the one that had room the last time."""

    async def admit(self, tenant: str, jobs: int, path: Path = ("jobs",), dependencies: int = 0) -> None:
        await self._of(tenant).admit(tenant, jobs, path, dependencies)

    def turned_away(self, tenant: str | None, length: int) -> Overloaded | None:
        if tenant is not None:
            return self._of(tenant).turned_away(tenant, length)
        # The body says whose it is, and it has not been read: it is read unless no shard would take it. One with room
        # is enough, and the others are not asked: each counts a refusal as one that the client gets.
        refusals = []
        for turn in range(len(self._shards)):
            index = (self._open + turn) % len(self._shards)
            refusal = self._shards[index].turned_away(None, length)
            if refusal is None:
                self._open = index
                return None
            refusals.append(refusal)
        return min(refusals, key=lambda refusal: refusal.retry_after_s)

    def is_holding_back(self) -> bool:
        return any(shard.is_holding_back() for shard in self._shards)

    def not_new(self, tenant: str, jobs: int, dependencies: int = 0) -> None:
        self._of(tenant).not_new(tenant, jobs, dependencies)

    def _of(self, tenant: str) -> Admission:
        return self._shards[self._places.of_tenant(tenant)]
