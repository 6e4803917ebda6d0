"""The groups of one lane and one tier, as far as the policy begins with those; else there is one node for all."""

from hascheduler.dispatch.groups import Group


class Node:
    """Owner of which of its groups are active: have a job that no lock holds back, as far as is known.

    ``mask`` has the bits of their kinds, ``rank`` is smaller the higher the tier.
    """

    __slots__ = ("_active", "_found", "lane", "mask", "rank", "tier")

    def __init__(self, lane: str | None, tier: int | None) -> None:
        self.lane = lane
        self.tier = tier
        self.rank = -(tier or 0)
        self.mask = 0
        self._active: dict[int, list[Group]] = {}
        self._found: dict[int, list[Group]] = {}

    def activate(self, group: Group) -> None:
        group.is_active = True
        bit = 1 << group.kind.bit
        self._active.setdefault(bit, []).append(group)
        self.mask |= bit
        self._found.clear()

    def deactivate(self, group: Group) -> None:
        group.is_active = False
        bit = 1 << group.kind.bit
        of_kind = self._active[bit]
        of_kind.remove(group)
        if not of_kind:
            del self._active[bit]
            self.mask &= ~bit
        self._found.clear()

    def of(self, ready: int) -> list[Group]:
        """The active groups of those kinds."""
        wanted = self.mask & ready
        found = self._found.get(wanted)
        if found is None:
            found = [group for bit, of_kind in self._active.items() if wanted & bit for group in of_kind]
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[wanted] = found
        return found


_FOUND_MAX = 64
