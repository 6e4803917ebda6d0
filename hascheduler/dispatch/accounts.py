"""What each fairness key has consumed, and what jobs of a definition cost on a target.

A dispatch charges its key the estimated cost at that moment: the learned cost of (definition, target), else the
definition's default. An attempt that ends teaches its cost, by an exponentially weighted moving average. Every replica
keeps these accounts from the same stream, so that a new leader goes on with them; `Accounts` carries them over a time
without any replica. They decide who goes first, never whether something is lost or doubled: accounts that are a few
charges apart on two replicas are no harm.
"""

import heapq
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.rules import Rules
from hascheduler.errors import InvalidInput
from hascheduler.model.fields import integer
from hascheduler.model.policy import IdleKeyStart

COST_MS_MAX = 7 * 24 * 3_600_000
"""A clock that jumps while a job runs must not put its key behind all others for good."""
KEPT_MAX = 100_000
"""Keys without jobs, and learned costs; beyond that those that were touched longest ago are forgotten."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """``accumulated`` are (key, cost_ms, touched_at_ms), ``learned`` (definition, target, cost_ms, touched_at_ms).

    Attempts dispatched by ``as_of_ms`` are in them.
    """

    accumulated: tuple[tuple[str, int, int], ...] = ()
    learned: tuple[tuple[str, str, int, int], ...] = ()
    as_of_ms: int = 0


def encode_accounts(accounts: Accounts) -> dict[str, Any]:
    """The stored form, without an id."""
    return {
        "accumulated": [list(row) for row in accounts.accumulated],
        "learned": [list(row) for row in accounts.learned],
        "as_of_ms": accounts.as_of_ms,
    }


def decode_accounts(fields: Mapping[str, Any]) -> Accounts:
    """Nothing stored is empty accounts; what is wrong with the rest is an `InvalidInput`."""
    return Accounts(
        _rows(fields, "accumulated", (str, int, int)),
        _rows(fields, "learned", (str, str, int, int)),
        integer(fields, "as_of_ms", default=0),
    )


def _rows(fields: Mapping[str, Any], name: str, types: tuple[type, ...]) -> Any:
    rows = fields.get(name, [])
    if not isinstance(rows, list):
        raise InvalidInput((name,), f"a {type(rows).__name__}", "a list")
    for n, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(types) or not all(map(isinstance, row, types)):
            raise InvalidInput((name, n), f"{str(row)[:64]}", f"a list of {len(types)} texts and whole numbers")
    return tuple(tuple(row) for row in rows)


class FairAccounts:
    """Owner of the accumulated and the learned costs. An accumulated cost never falls while its key has jobs."""

    def __init__(self, policy: PolicyConfig, rules: Rules) -> None:
        self._policy = policy
        self._rules = rules
        self._cost: dict[str, int] = {}
        self._live: dict[str, int] = {}
        self._idle: OrderedDict[str, int] = OrderedDict()
        self._lowest: list[tuple[int, str]] = []
        self._learned: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._as_of_ms = 0
        self._restored: set[str] = set()

    def cost(self, key: str) -> int:
        """What the key has accumulated, in ms."""
        return self._cost.get(key, 0)

    def learned(self, definition: str, target: str) -> int | None:
        known = self._learned.get((definition, target))
        return known[0] if known is not None else None

    def estimate(self, definition: str, target: str) -> int:
        """What a dispatch would be charged, in ms."""
        known = self._learned.get((definition, target))
        return known[0] if known is not None else self._rules.definition(definition).default_cost_ms

    # Keys

    def arrive(self, key: str) -> None:
        """One more job of that key is there."""
        count = self._live.get(key, 0)
        if count:
            self._live[key] = count + 1
            return
        lowest = self._lowest_active()
        self._live[key] = 1
        self._idle.pop(key, None)
        begins = self._policy.idle_key_start is IdleKeyStart.MIN and key not in self._restored
        if begins and lowest is not None and lowest > self.cost(key):
            self._cost[key] = lowest
        self._restored.discard(key)
        heapq.heappush(self._lowest, (self.cost(key), key))

    def leave(self, key: str, now: int) -> None:
        """One of its jobs has ended."""
        count = self._live.get(key, 0) - 1
        if count > 0:
            self._live[key] = count
            return
        self._live.pop(key, None)
        if key in self._cost:
            self._idle[key] = now

    def is_counted(self, dispatched_at_ms: int | None) -> bool:
        """Whether that dispatch is in the restored accounts already."""
        return dispatched_at_ms is not None and dispatched_at_ms <= self._as_of_ms

    def charge(self, key: str, definition: str, target: str) -> None:
        """A job of the key was dispatched."""
        self._cost[key] = self.cost(key) + self.estimate(definition, target)

    # Costs

    def learn(self, definition: str, target: str, elapsed_ms: int, now: int) -> None:
        """An attempt ran for so long."""
        if not self._policy.learn_cost:
            return
        known = self.learned(definition, target)
        alpha = self._policy.cost_alpha
        elapsed_ms = min(elapsed_ms, COST_MS_MAX)
        cost = elapsed_ms if known is None else (alpha * elapsed_ms + (1_000 - alpha) * known) // 1_000
        self._learned[(definition, target)] = (cost, now)
        self._learned.move_to_end((definition, target))

    # Memory

    def advance(self, now: int) -> None:
        """Forget what has been idle for too long."""
        before = now - self._policy.idle_ttl_ms
        while self._idle:
            key, since_ms = next(iter(self._idle.items()))
            if since_ms > before and len(self._idle) <= KEPT_MAX:
                break
            del self._idle[key]
            del self._cost[key]
            self._restored.discard(key)
        while self._learned:
            _, touched_at_ms = next(iter(self._learned.values()))
            if touched_at_ms > before and len(self._learned) <= KEPT_MAX:
                break
            self._learned.popitem(last=False)

    def snapshot(self, now: int, limit: int) -> Accounts:
        """What a start after a time without replicas needs; of each kind the newest ``limit``."""
        active = ((key, self.cost(key), now) for key in self._live)
        idle = ((key, self.cost(key), at_ms) for key, at_ms in reversed(self._idle.items()))
        learned = ((*pair, cost, at_ms) for pair, (cost, at_ms) in reversed(self._learned.items()))
        return Accounts(tuple(islice(chain(active, idle), limit)), tuple(islice(learned, limit)), now)

    def restore(self, accounts: Accounts) -> None:
        """Begin with these: what is known already and is more, stays."""
        self._as_of_ms = accounts.as_of_ms
        for key, cost, at_ms in sorted(accounts.accumulated, key=lambda row: row[2]):
            self._cost[key] = max(self.cost(key), cost)
            if at_ms >= accounts.as_of_ms:
                self._restored.add(key)  # it had jobs, so it does not begin with those that are read now
            if key in self._live:
                heapq.heappush(self._lowest, (self._cost[key], key))
            else:
                self._idle[key] = at_ms
        for definition, target, cost, at_ms in sorted(accounts.learned, key=lambda row: row[3]):
            self._learned.setdefault((definition, target), (min(max(cost, 0), COST_MS_MAX), at_ms))

    def _lowest_active(self) -> int | None:
        """The smallest accumulated cost among the keys that have jobs."""
        heap = self._lowest
        if len(heap) > 1_024 and len(heap) > 2 * len(self._live):
            heap[:] = [(self.cost(key), key) for key in self._live]
            heapq.heapify(heap)
        while heap:
            cost, key = heap[0]
            if key not in self._live:
                heapq.heappop(heap)
            elif cost != self.cost(key):
                heapq.heapreplace(heap, (self.cost(key), key))
            else:
                return cost
        return None
