"""What people set: definitions, lanes, tenants, pauses and calendars as last seen; and shares of caps over all shards.

An unknown name has the defaults, except among calendars: what depends on one that is not there waits for it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from hascheduler.model.calendar import Calendar
from hascheduler.model.definition import Definition, RateLimit
from hascheduler.model.lane import Lane
from hascheduler.model.pause import EVERYTHING, StandingPause
from hascheduler.model.share import Share, definition_key, even_share, rate_key
from hascheduler.model.tenant import Tenant


class Rules:
    """Owner of the tables. `CoreState` informs those parts that derive something from them. Caps and rates of a whole
    deployment of ``shard_count`` shards are shown as the share that this one, ``shard_index``, may use."""

    def __init__(self, shard_index: int = 0, shard_count: int = 1) -> None:
        self._shard_index = shard_index
        self._shard_count = shard_count
        self.definitions: dict[str, Definition] = {}
        self.whole_definitions: dict[str, Definition] = {}
        self.lanes: dict[str, Lane] = {}
        self.tenants: dict[str, Tenant] = {}
        self.pauses: dict[str, StandingPause] = {}
        self.calendars: dict[str, Calendar] = {}
        self.shares: dict[str, Share] = {}
        self._awaited: dict[str, Share] = {}

    def define(self, name: str, definition: Definition | None) -> None:
        """Put the definition of that name, with this shard's shares; None: there is none any more."""
        if definition is None:
            self.definitions.pop(name, None)
            self.whole_definitions.pop(name, None)
            return
        self.whole_definitions[name] = definition
        if self._shard_count > 1:
            limit, rate = definition.max_concurrency, definition.rate_limit
            definition = replace(
                definition,
                max_concurrency=None if limit is None else self.share_of(definition_key(name), limit),
                rate_limit=None if rate is None else replace(rate, count=self._rate_share(name, rate.count)),
            )
        self.definitions[name] = definition

    def put_share(self, key: str, share: Share | None) -> None:
        """None: an even share holds again."""
        self._awaited.pop(key, None)
        if share is None:
            self.shares.pop(key, None)
            return
        self.shares[key] = share
        if share.is_awaited:
            self._awaited[key] = share

    def awaited_shares(self) -> Sequence[Share]:
        """Those that were lowered, and have yet to be released."""
        return list(self._awaited.values()) if self._awaited else ()

    def share_of(self, key: str, cap: int) -> int:
        """What this shard may use of the cap of that key, which is ``cap`` over all shards: the shares are whole, and
        add up to at most the cap. One that was not moved yet is even."""
        share = self.shares.get(key) if self._shard_count > 1 else None
        return self._even(cap) if share is None else min(share.limit, cap)

    def whole_rate(self, name: str) -> RateLimit | None:
        """The rate limit of that definition over all shards."""
        whole = self.whole_definitions.get(name)
        return None if whole is None else whole.rate_limit

    def _rate_share(self, name: str, count: int) -> int:
        """What this shard may use of the rate. Where nothing was ever moved it is at least one: a count from before
        there were as many shards starves none of them."""
        key = rate_key(name)
        return self.share_of(key, count) if key in self.shares else max(self._even(count), 1)

    def _even(self, cap: int) -> int:
        return even_share(cap, self._shard_index, self._shard_count)

    @property
    def share_note(self) -> str:
        """For people, behind a cap of which this shard has a share."""
        return f", which is this shard's share between {self._shard_count}" if self._shard_count > 1 else ""

    def definition(self, name: str) -> Definition:
        return self.definitions.get(name) or _default_definition(name)

    def lane(self, name: str) -> Lane:
        return self.lanes.get(name) or _default_lane(name)

    @property
    def pause(self) -> StandingPause | None:
        """The pause of everything: no due time of any schedule is decided."""
        return self.pauses.get(EVERYTHING)

    @property
    def dispatch_pause(self) -> StandingPause | None:
        """The same where it stops dispatches, too."""
        pause = self.pauses.get(EVERYTHING)
        return None if pause is None or pause.schedules_only else pause

    def quota(self, tenant: str) -> int | None:
        """The number of the tenant's jobs that may run at once; None: no quota."""
        known = self.tenants.get(tenant)
        return known.max_running if known is not None else None


@lru_cache(maxsize=4_096)
def _default_definition(name: str) -> Definition:
    return Definition(name)


@lru_cache(maxsize=4_096)
def _default_lane(name: str) -> Lane:
    return Lane(name)
