"""The accounts: what each tenant and each of its fairness keys has consumed, and the learned costs of jobs.

An *account* is the accumulated cost of a tenant, or of one fairness key of one tenant: a key is free text, so it has no
meaning outside its tenant. A dispatch charges both accounts of its job the estimated cost at that moment: the learned
cost of (definition, target), or else the definition's default. The learned cost is an exponentially weighted moving
average over ended attempts. Every replica keeps these accounts from the same stream, so that a new leader continues
with them; an `AccountsSnapshot` carries them over a time without any replica. They decide which job goes first, never
if one is lost or doubled, so it is harmless if the accounts of two replicas are a few charges apart.

The memory per tenant is bounded: keys with jobs by the tenant's jobs, and keys without jobs are kept only while the
tenant has at most `KEYS_MAX` keys. Which keys are forgotten follows from the history alone.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from sys import maxsize
from typing import Any, TypeVar

from hascheduler.dispatch.config import PolicyConfig
from hascheduler.dispatch.rules import Rules
from hascheduler.errors import InvalidInput
from hascheduler.model.policy import IdleKeyStart
from hascheduler.model.values.fields import integer
from hascheduler.schema.tenant import DEFAULT_TENANT

COST_MS_MAX = 7 * 24 * 3_600_000
"""The highest learned cost: a clock that jumps while a job runs must not put its key behind all others for good."""
KEPT_MAX = 100_000
"""Tenants without jobs, keys without jobs and learned costs kept at most; the longest untouched are forgotten first."""
KEYS_MAX = 10_000
"""The most keys of one tenant; beyond that, keys without jobs are forgotten, the longest idle first."""

Row = tuple[str, str, int, int]
_Item = TypeVar("_Item")
_Row = TypeVar("_Row", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class AccountsSnapshot:
    """The accounts of tenants and keys, and the learned costs, at one time.

    ``accumulated`` holds (tenant, key, cost_ms, touched_at_ms), ``learned`` (definition, target, cost_ms,
    touched_at_ms), ``tenants`` (tenant, cost_ms, touched_at_ms). Attempts dispatched by ``as_of_ms`` are included.
    """

    accumulated: tuple[Row, ...] = ()
    learned: tuple[Row, ...] = ()
    as_of_ms: int = 0
    tenants: tuple[tuple[str, int, int], ...] = ()


def encode_accounts(accounts: AccountsSnapshot) -> dict[str, Any]:
    """Return the stored form, without an id: ``by_tenant``, ``tenants``, ``learned``, ``as_of_ms``.

    For 0.2.0 alone it also has ``accumulated``, which holds what each key has consumed in all tenants together.
    """
    by_key: dict[str, list[Any]] = {}
    for _, key, cost, at_ms in accounts.accumulated:
        known = by_key.setdefault(key, [key, 0, at_ms])
        known[1:] = [known[1] + cost, max(known[2], at_ms)]
    return {
        "accumulated": list(by_key.values()),
        "by_tenant": [list(row) for row in accounts.accumulated],
        "tenants": [list(row) for row in accounts.tenants],
        "learned": [list(row) for row in accounts.learned],
        "as_of_ms": accounts.as_of_ms,
    }


def decode_accounts(fields: Mapping[str, Any]) -> AccountsSnapshot:
    """Return the stored accounts, empty if nothing is stored; raise `InvalidInput` if they can't be read.

    In what 0.2.0 stored, a key has no tenant. It continues as a key of the tenant ``default`` and, since a key is its
    tenant's name unless a job sets another, as the same key of the tenant of that name. Other accounts start new.
    """
    by_key = _rows(fields, "accumulated", (str, int, int))
    accumulated = _rows(fields, "by_tenant", (str, str, int, int))
    tenants = _rows(fields, "tenants", (str, int, int))
    if "by_tenant" not in fields:
        accumulated = tuple((tenant, *row) for row in by_key for tenant in dict.fromkeys((DEFAULT_TENANT, row[0])))
        tenants = by_key
    return AccountsSnapshot(
        accumulated,
        _rows(fields, "learned", (str, str, int, int)),
        integer(fields, "as_of_ms", default=0),
        tenants,
    )


def _rows(fields: Mapping[str, Any], name: str, types: tuple[type, ...]) -> Any:
    rows = fields.get(name, [])
    if not isinstance(rows, list):
        raise InvalidInput((name,), f"a {type(rows).__name__}", "a list")
    for n, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != len(types) or not all(map(isinstance, row, types)):
            raise InvalidInput((name, n), f"{str(row)[:64]}", f"a list of {len(types)} strings and integers")
    return tuple(tuple(row) for row in rows)


class CompetingAccounts:
    """Accounts that compete with each other: those of all tenants, or those of one tenant's keys.

    Owner of what each has consumed and how many jobs each has. The cost of an account never falls while it has jobs.
    """

    __slots__ = ("_lowest", "_restored", "costs", "idle", "live")

    def __init__(self) -> None:
        self.costs: dict[str, int] = {}
        self.live: dict[str, int] = {}
        self.idle: OrderedDict[str, int] = OrderedDict()
        self._lowest: list[tuple[int, str]] = []
        self._restored: set[str] = set()

    def arrive(self, name: str, start: IdleKeyStart) -> None:
        """Add a job to the account."""
        count = self.live.get(name, 0)
        if count:
            self.live[name] = count + 1
            return
        cost = self.costs.get(name, 0)
        if start is IdleKeyStart.MIN:
            lowest = self._lowest_active()
            if lowest is not None and lowest > cost and name not in self._restored:
                cost = self.costs[name] = lowest
            heapq.heappush(self._lowest, (cost, name))
        self.live[name] = 1
        self.idle.pop(name, None)
        self._restored.discard(name)

    def leave(self, name: str, now: int) -> bool:
        """Remove an ended job; return True if it was the account's last and there is a cost to remember."""
        count = self.live.get(name, 0) - 1
        if count > 0:
            self.live[name] = count
            return False
        self.live.pop(name, None)
        if name not in self.costs:
            return False
        self.idle[name] = now
        return True

    def charge(self, name: str, cost: int) -> None:
        self.costs[name] = self.costs.get(name, 0) + cost

    def restore(self, name: str, cost: int, at_ms: int, *, had_jobs: bool) -> bool:
        """Set the account to at least ``cost``; return True if it has no jobs."""
        cost = self.costs[name] = max(self.costs.get(name, 0), cost)
        if had_jobs:
            self._restored.add(name)  # so that it does not start at the minimum of the accounts read by now
        if name in self.live:
            heapq.heappush(self._lowest, (cost, name))
            return False
        self.idle[name] = at_ms
        return True

    def forget(self, name: str) -> None:
        del self.idle[name], self.costs[name]
        self._restored.discard(name)

    def known(self, now: int) -> Iterator[tuple[str, int, int]]:
        """Yield (name, cost_ms, touched_at_ms): accounts with jobs, touched now, then the others, the newest first."""
        for name in self.live:
            yield name, self.costs.get(name, 0), now
        for name, at_ms in reversed(self.idle.items()):
            # An account whose last job ended in this very millisecond must not be read as one with jobs.
            yield name, self.costs[name], min(at_ms, now - 1)

    def _lowest_active(self) -> int | None:
        """Return the smallest accumulated cost among accounts with jobs."""
        heap = self._lowest
        if len(heap) > 1_024 and len(heap) > 2 * len(self.live):
            heap[:] = [(self.costs.get(name, 0), name) for name in self.live]
            heapq.heapify(heap)
        while heap:
            cost, name = heap[0]
            if name not in self.live:
                heapq.heappop(heap)
            elif cost != (present := self.costs.get(name, 0)):
                heapq.heapreplace(heap, (present, name))
            else:
                return cost
        return None


class FairAccounts:
    """Owner of the accumulated and the learned costs."""

    def __init__(self, policy: PolicyConfig, rules: Rules) -> None:
        self._policy = policy
        self._rules = rules
        self._tenants = CompetingAccounts()
        self._keys: dict[str, CompetingAccounts] = {}
        self._idle: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._learned: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._as_of_ms = 0

    def tenant_cost(self, tenant: str | None) -> int:
        """Return what the tenant has consumed, in ms; 0 for None, which is no tenant."""
        return self._tenants.costs.get(tenant, 0)  # type: ignore[arg-type]

    def cost(self, tenant: str, key: str) -> int:
        """Return what the tenant's key has consumed, in ms."""
        keys = self._keys.get(tenant)
        return keys.costs.get(key, 0) if keys is not None else 0

    def learned(self, definition: str, target: str) -> int | None:
        known = self._learned.get((definition, target))
        return known[0] if known is not None else None

    def estimate(self, definition: str, target: str) -> int:
        """Return the charge of a dispatch now, in ms."""
        known = self._learned.get((definition, target))
        return known[0] if known is not None else self._rules.definition(definition).default_cost_ms

    # Tenants and keys

    def arrive(self, tenant: str, key: str) -> None:
        """Add a job to the tenant's key."""
        self._tenants.arrive(tenant, self._policy.idle_key_start)
        keys = self._keys.get(tenant)
        if keys is None:
            keys = self._keys[tenant] = CompetingAccounts()
        keys.arrive(key, self._policy.idle_key_start)
        self._idle.pop((tenant, key), None)
        self._bound(tenant, keys)

    def leave(self, tenant: str, key: str, now: int) -> None:
        """Remove an ended job from the tenant's key."""
        keys = self._keys[tenant]
        if keys.leave(key, now):
            self._idle[(tenant, key)] = now
            self._bound(tenant, keys)
        self._tenants.leave(tenant, now)
        self._drop_if_empty(tenant, keys)

    def is_counted(self, dispatched_at_ms: int | None) -> bool:
        """Return True if the restored accounts already include that dispatch."""
        return dispatched_at_ms is not None and dispatched_at_ms <= self._as_of_ms

    def charge(self, tenant: str, key: str, definition: str, target: str) -> None:
        """Charge both accounts for a dispatch."""
        cost = self.estimate(definition, target)
        self._tenants.charge(tenant, cost)
        self._keys[tenant].charge(key, cost)

    # Costs

    def learn(self, definition: str, target: str, elapsed_ms: int, now: int) -> None:
        """Update the learned cost with an attempt that ended after ``elapsed_ms``."""
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
        """Forget accounts and learned costs that have been idle for ``idle_ttl_ms``."""
        before = now - self._policy.idle_ttl_ms
        while self._idle:
            (tenant, key), since_ms = next(iter(self._idle.items()))
            if since_ms > before and len(self._idle) <= KEPT_MAX:
                break
            self._forget(tenant, key)
        idle = self._tenants.idle
        while idle:
            tenant, since_ms = next(iter(idle.items()))
            if since_ms > before and len(idle) <= KEPT_MAX:
                break
            self._tenants.forget(tenant)
        while self._learned:
            _, touched_at_ms = next(iter(self._learned.values()))
            if touched_at_ms > before and len(self._learned) <= KEPT_MAX:
                break
            self._learned.popitem(last=False)

    def snapshot(self, now: int, rows_max: int, characters_max: int = maxsize) -> AccountsSnapshot:
        """Return the accounts to start with after a time without replicas: the newest of each kind, within both limits.

        The keys of the tenants are taken in turns, so that the many of one tenant leave room for the few of another.
        """
        limits = (rows_max, characters_max)
        rows = [zip(repeat(tenant), keys.known(now)) for tenant, keys in self._keys.items()]
        return AccountsSnapshot(
            accumulated=tuple(_within(_joined(_by_turns(rows)), *limits)),
            learned=tuple(_within(self._newest_learned(), *limits)),
            as_of_ms=now,
            tenants=tuple(_within(self._tenants.known(now), *limits)),
        )

    def _newest_learned(self) -> Iterator[tuple[str, str, int, int]]:
        for (definition, target), (cost, at_ms) in reversed(self._learned.items()):
            yield definition, target, cost, at_ms

    def restore(self, accounts: AccountsSnapshot) -> None:
        """Set every account to at least its cost in ``accounts``; learned costs that are already known stay."""
        self._as_of_ms = as_of_ms = accounts.as_of_ms
        for tenant, cost, at_ms in sorted(accounts.tenants, key=lambda row: row[2]):
            self._tenants.restore(tenant, cost, at_ms, had_jobs=at_ms >= as_of_ms)
        for tenant, key, cost, at_ms in sorted(accounts.accumulated, key=lambda row: row[3]):
            keys = self._keys.setdefault(tenant, CompetingAccounts())
            if keys.restore(key, cost, at_ms, had_jobs=at_ms >= as_of_ms):
                self._idle[(tenant, key)] = at_ms
                self._bound(tenant, keys)
        for definition, target, cost, at_ms in sorted(accounts.learned, key=lambda row: row[3]):
            self._learned.setdefault((definition, target), (min(max(cost, 0), COST_MS_MAX), at_ms))

    def _bound(self, tenant: str, keys: CompetingAccounts) -> None:
        while keys.idle and len(keys.idle) + len(keys.live) > KEYS_MAX:
            self._forget(tenant, next(iter(keys.idle)))

    def _forget(self, tenant: str, key: str) -> None:
        del self._idle[(tenant, key)]
        keys = self._keys[tenant]
        keys.forget(key)
        self._drop_if_empty(tenant, keys)

    def _drop_if_empty(self, tenant: str, keys: CompetingAccounts) -> None:
        if not keys.live and not keys.idle:
            self._keys.pop(tenant, None)


def _within(rows: Iterable[_Row], rows_max: int, characters_max: int) -> Iterator[_Row]:
    """Yield the first rows, as many as the limits allow."""
    for row in islice(rows, rows_max):
        characters_max -= sum(len(each) for each in row if isinstance(each, str))
        if characters_max < 0:
            return
        yield row


def _joined(rows: Iterable[tuple[str, tuple[str, int, int]]]) -> Iterator[tuple[str, str, int, int]]:
    for tenant, (key, cost, at_ms) in rows:
        yield tenant, key, cost, at_ms


def _by_turns(rows: Iterable[Iterator[_Item]]) -> Iterator[_Item]:
    """Yield one item of each in turn, until all are exhausted."""
    left = list(rows)
    while left:
        going = []
        for each in left:
            row = next(each, None)
            if row is not None:
                going.append(each)
                yield row
        left = going
