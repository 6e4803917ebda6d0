"""The groups of one lane and one tier, as far as the policy begins with those; else there is one node for all."""

from hascheduler.dispatch.queue.class_queues import ClassQueue


class LaneTier:
    """Owner of which of its groups are active: have a job that no lock holds back, as far as is known.

    ``mask`` has the bits of their kinds, ``rank`` is smaller the higher the tier.
    """

    __slots__ = ("_active", "_found", "lane", "mask", "rank", "tier")

    def __init__(self, lane: str | None, tier: int | None) -> None:
        self.lane = lane
        self.tier = tier
        self.rank = -(tier or 0)
        self.mask = 0
        self._active: dict[int, list[ClassQueue]] = {}
        self._found: dict[int, list[ClassQueue]] = {}

    def activate(self, class_queue: ClassQueue) -> None:
        class_queue.is_active = True
        bit = 1 << class_queue.job_class.bit
        self._active.setdefault(bit, []).append(class_queue)
        self.mask |= bit
        self._found.clear()

    def deactivate(self, class_queue: ClassQueue) -> None:
        class_queue.is_active = False
        bit = 1 << class_queue.job_class.bit
        of_class = self._active[bit]
        of_class.remove(class_queue)
        if not of_class:
            del self._active[bit]
            self.mask &= ~bit
        self._found.clear()

    def of(self, ready: int) -> list[ClassQueue]:
        """The active groups of those kinds."""
        wanted = self.mask & ready
        found = self._found.get(wanted)
        if found is None:
            found = [class_queue for bit, of_class in self._active.items() if wanted & bit for class_queue in of_class]
            if len(self._found) >= _FOUND_MAX:
                self._found.clear()
            self._found[wanted] = found
        return found


_FOUND_MAX = 64
