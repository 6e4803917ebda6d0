"""How much of the processors each lane uses: the lane with the smallest weighted dominant share goes first.

Source: Ghodsi et al., Dominant Resource Fairness, NSDI 2011; weights as in its section 4.3, one for all resources.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from hascheduler.dispatch.pool import SlotPool
from hascheduler.dispatch.rules import Rules
from hascheduler.model.resources import SLOTS, Resources

Rank = tuple[float, Fraction]
"""Rounding keeps the order, so where two floats differ the fractions need not be compared, which is dear."""
_NOTHING = Fraction(0)
_IDLE: Rank = (0.0, _NOTHING)


def dominant_share(used: Mapping[str, int], total: Mapping[str, int], weight: int) -> Fraction:
    """The largest fraction used of any one resource, divided by the weight.

    Resources that the processors do not have (total 0) are left out; an idle lane has share 0.
    """
    shares = [Fraction(amount, total[name] * weight) for name, amount in used.items() if total.get(name, 0) > 0]
    return max(shares, default=_NOTHING)


class LaneShares:
    """Owner of what each lane uses of the pool's processors; a share is worked out when it is asked for."""

    def __init__(self, rules: Rules, pool: SlotPool) -> None:
        self._rules = rules
        self._pool = pool
        self._since = -1
        self._used: dict[str, Counter[str]] = {}
        self._ranks: dict[str, Rank] = {}

    def take(self, lane: str, needs: Resources) -> None:
        """One of its jobs holds a slot, and ``needs``."""
        used = self._used.setdefault(lane, Counter())
        used[SLOTS] += 1
        for name, amount in needs:
            used[name] += amount
        self._ranks.pop(lane, None)

    def give_back(self, lane: str, needs: Resources) -> None:
        used = self._used[lane]
        used[SLOTS] -= 1
        for name, amount in needs:
            used[name] -= amount
        if not used[SLOTS]:
            del self._used[lane]
        self._ranks.pop(lane, None)

    def share(self, lane: str) -> Fraction:
        return self.rank(lane)[1]

    def rank(self, lane: str) -> Rank:
        """Orders lanes as their shares do."""
        if self._since != self._pool.arrivals:
            self._since = self._pool.arrivals
            self._ranks.clear()
        known = self._ranks.get(lane)
        if known is None:
            used = self._used.get(lane)
            if used is None:
                return _IDLE
            share = dominant_share(used, self._pool.totals, self._rules.lane(lane).weight)
            known = self._ranks[lane] = (float(share), share)
        return known

    def used(self, lane: str) -> Mapping[str, int]:
        return self._used.get(lane, {})

    def reweighed(self, lane: str) -> None:
        """Its weight is another now."""
        self._ranks.pop(lane, None)
