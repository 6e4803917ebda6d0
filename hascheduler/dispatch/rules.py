"""What people set: definitions, lanes, tenants, pauses and calendars as last seen.

An unknown name has the defaults, except among calendars: what depends on one that is not there waits for it.
"""

from functools import lru_cache

from hascheduler.model.calendar import Calendar
from hascheduler.model.definition import Definition
from hascheduler.model.lane import Lane
from hascheduler.model.pause import EVERYTHING, StandingPause
from hascheduler.model.tenant import Tenant


class Rules:
    """Owner of the four tables. `CoreState` informs those parts that derive something from them."""

    def __init__(self) -> None:
        self.definitions: dict[str, Definition] = {}
        self.lanes: dict[str, Lane] = {}
        self.tenants: dict[str, Tenant] = {}
        self.pauses: dict[str, StandingPause] = {}
        self.calendars: dict[str, Calendar] = {}

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
