"""The weighted dominant share of each lane: the fraction of the processors that it uses; the smallest goes first.

Source: Ghodsi et al., Dominant Resource Fairness, NSDI 2011; weights as in its section 4.3, one for all resources.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.dispatch.rules import Rules
from hascheduler.model.resources import SLOTS, Resources

Share = tuple[float, int, int]
"""The float nearest to a fraction, its numerator and its denominator.

Rounding keeps the order: the integers are compared only if two floats are equal. A `Fraction`, which is costly to make,
is made only for people.
"""
_IDLE: Share = (0.0, 0, 1)


def dominant_share(used: Mapping[str, int], total: Mapping[str, int], weight: int) -> Share:
    """Return the largest fraction used of any one resource, divided by the weight.

    Resources that the processors do not have (total 0) are left out; an idle lane has share 0.
    """
    numerator, denominator = 0, 1
    for name, amount in used.items():
        of = total.get(name, 0)
        if of > 0 and amount * denominator > numerator * of:
            numerator, denominator = amount, of
    denominator *= weight
    return (numerator / denominator, numerator, denominator)


class LaneShares:
    """Owner of what each lane uses of the pool's processors; a share is computed when it is read."""

    def __init__(self, rules: Rules, pool: SlotPool) -> None:
        self._rules = rules
        self._pool = pool
        self._since = -1
        self._used: dict[str, Counter[str]] = {}
        self._shares: dict[str, Share] = {}

    def take(self, lane: str, needs: Resources) -> None:
        """Add a slot and ``needs`` to what the lane uses."""
        used = self._used.setdefault(lane, Counter())
        used[SLOTS] += 1
        for name, amount in needs:
            used[name] += amount
        self._shares.pop(lane, None)

    def give_back(self, lane: str, needs: Resources) -> None:
        used = self._used[lane]
        used[SLOTS] -= 1
        for name, amount in needs:
            used[name] -= amount
        if not used[SLOTS]:
            del self._used[lane]
        self._shares.pop(lane, None)

    def share(self, lane: str) -> Fraction:
        _, numerator, denominator = self._share(lane)
        return Fraction(numerator, denominator)

    def least(self, lanes: Iterable[str]) -> list[str]:
        """Return the lanes with the smallest share."""
        found: list[str] = []
        least = _IDLE
        for lane in lanes:
            share = self._share(lane)
            if found and share[0] == least[0]:
                above = share[1] * least[2] - least[1] * share[2]
            else:
                above = -1 if not found or share[0] < least[0] else 1
            if above < 0:
                found, least = [lane], share
            elif above == 0:
                found.append(lane)
        return found

    def _share(self, lane: str) -> Share:
        if self._since != self._pool.arrivals:
            self._since = self._pool.arrivals
            self._shares.clear()
        known = self._shares.get(lane)
        if known is None:
            used = self._used.get(lane)
            if used is None:
                return _IDLE
            known = self._shares[lane] = dominant_share(used, self._pool.totals, self._rules.lane(lane).weight)
        return known

    def reweighed(self, lane: str) -> None:
        """Forget the share of a lane whose weight has changed."""
        self._shares.pop(lane, None)
