"""What people set: definitions, lanes, tenants, pauses, calendars and holds, as last seen.

An unknown name has the defaults, except for a calendar: what depends on a calendar that does not exist waits for it.
"""

from collections.abc import Sequence
from functools import lru_cache

from hascheduler.model.partition import Hold, definition_key
from hascheduler.schema.calendar import Calendar
from hascheduler.schema.definition import Definition, RateLimit
from hascheduler.schema.lane import Lane
from hascheduler.schema.pause import EVERYTHING, StandingPause
from hascheduler.schema.tenant import Tenant


class Rules:
    """Owner of the tables. `CoreState` informs the parts that derive something from them.

    ``part`` is the index of this shard and the number of shards that divide each cap and rate: ``definitions`` hold
    this shard's part of them.
    """

    def __init__(self, part: tuple[int, int] = (0, 1)) -> None:
        self._index, self._count = part
        self.definitions: dict[str, Definition] = {}
        self.whole_definitions: dict[str, Definition] = {}
        self.lanes: dict[str, Lane] = {}
        self.tenants: dict[str, Tenant] = {}
        self.pauses: dict[str, StandingPause] = {}
        self.calendars: dict[str, Calendar] = {}
        self.holds: dict[str, Hold] = {}
        self._awaited: dict[str, Hold] = {}

    def define(self, name: str, definition: Definition | None) -> None:
        """Set the definition of that name, with this shard's part of its limits; remove it if it is None."""
        if definition is None:
            self.definitions.pop(name, None)
            self.whole_definitions.pop(name, None)
            return
        self.whole_definitions[name] = definition
        if self._count > 1:
            limit, rate = definition.max_concurrency, definition.rate_limit
            part = None if limit is None else self.part_of(definition_key(name), limit)
            slower = None if rate is None else rate.model_copy(update={"count": max(self._even(rate.count), 1)})
            definition = definition.model_copy(update={"max_concurrency": part, "rate_limit": slower})
        self.definitions[name] = definition

    def put_hold(self, key: str, hold: Hold | None) -> None:
        """Set the hold of that key; remove it if it is None."""
        self._awaited.pop(key, None)
        if hold is None:
            self.holds.pop(key, None)
            return
        self.holds[key] = hold
        if hold.is_awaited:
            self._awaited[key] = hold

    def awaited_holds(self) -> Sequence[Hold]:
        """Return the holds that have yet to be released."""
        return list(self._awaited.values()) if self._awaited else ()

    def part_of(self, key: str, cap: int) -> int:
        """Return how many jobs this shard may run of the ``cap`` that the key has in all shards together.

        A cap is divided evenly, and its holds mean nothing, if each shard gets at least one. A smaller cap is whole in
        the one shard whose hold on it is lifted; the first shard has it until there is a hold.
        """
        if not self.has_turns(cap):
            return self._even(cap)
        hold = self.holds.get(key)
        is_here = self._index == 0 if hold is None else not hold.is_held
        return cap if is_here else 0

    def has_turns(self, cap: int) -> bool:
        """Return True if a cap is too small to be divided, so that one shard has all of it at a time."""
        return cap < self._count

    def _even(self, cap: int) -> int:
        return cap // self._count + (self._index < cap % self._count)

    def part_note(self, part: int, whole: int | None) -> str:
        """Return the note that follows a limit of which this shard has ``part``, or "" if it has all."""
        if whole is None or part == whole:
            return ""
        return f" (this shard's part of {whole})" if part else f" (another shard has all {whole} now)"

    def definition(self, name: str) -> Definition:
        return self.definitions.get(name) or _default_definition(name)

    def lane(self, name: str) -> Lane:
        return self.lanes.get(name) or _default_lane(name)

    @property
    def pause(self) -> StandingPause | None:
        """Return the pause of everything: no due time of any schedule is decided."""
        return self.pauses.get(EVERYTHING)

    @property
    def dispatch_pause(self) -> StandingPause | None:
        """Return the pause of everything if it stops dispatches too."""
        pause = self.pauses.get(EVERYTHING)
        return None if pause is None or pause.schedules_only else pause

    def quota(self, tenant: str) -> int | None:
        """Return how many of the tenant's jobs may run at once; None without a quota."""
        known = self.tenants.get(tenant)
        return known.max_running if known is not None else None

    def fire_rate(self, tenant: str) -> RateLimit | None:
        """Return the rate at which the tenant's schedules may fire; None without a limit."""
        known = self.tenants.get(tenant)
        return known.fire_rate if known is not None else None


@lru_cache(maxsize=4_096)
def _default_definition(name: str) -> Definition:
    return Definition(name=name)


@lru_cache(maxsize=4_096)
def _default_lane(name: str) -> Lane:
    return Lane(name=name)
