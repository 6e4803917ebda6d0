"""``/v1/definitions``, ``lanes``, ``calendars`` and ``tenants``: a row of each for `named_routes`."""

from hascheduler.api.middleware.auth import AdminOfAll, OperatorOfAll
from hascheduler.api.resources.named_routes import Named, named_routes
from hascheduler.api.services import ApiServices
from hascheduler.errors import Conflict, InvalidInput
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.schema.calendar import Calendar, CalendarBody
from hascheduler.schema.definition import Definition, DefinitionBody
from hascheduler.schema.lane import Lane, LaneBody
from hascheduler.schema.tenant import Tenant, TenantBody
from hascheduler.triggers import calendars_of

_USERS_SHOWN_MAX = 10


async def _demand_unused(calendar: str, services: ApiServices) -> None:
    """Raise `Conflict` if schedules use the calendar, or have times to decide that did."""
    users = services.view.schedules_on(calendar)
    # The stream may still show what was deleted or edited just now.
    if len(users) > _USERS_SHOWN_MAX or [user for user in users if await _uses(user, calendar, services)]:
        shown = ", ".join(sorted(users)[:_USERS_SHOWN_MAX])
        more = f" and {len(users) - _USERS_SHOWN_MAX} more" if len(users) > _USERS_SHOWN_MAX else ""
        raise Conflict(f"calendar {calendar!r} is used by the schedules {shown}{more}; edit or delete them first")


async def _uses(schedule: str, calendar: str, services: ApiServices) -> bool:
    stored = await services.schedules.get(schedule)
    try:
        return stored is not None and calendar in calendars_of(decode_schedule(schedule, stored))
    except InvalidInput:
        return True  # until it can be read


_DEFINITIONS = Named(
    Definition,
    DefinitionBody,
    OperatorOfAll,
    lambda services: services.definitions,
    patch={"max_concurrency": None, "tier": 10, "retry": {"attempts": 3}},
    left=". Its jobs go on, with the default limits.",
)
_LANES = Named(
    Lane,
    LaneBody,
    AdminOfAll,
    lambda services: services.lanes,
    patch={"weight": 2, "policy": None},
    left=". Its jobs go on, in a lane with the defaults.",
)
_CALENDARS = Named(
    Calendar,
    CalendarBody,
    AdminOfAll,
    lambda services: services.calendars,
    patch={"exclude": ["--12-25", "--12-26"]},
    left="; 409 while schedules use it, or have times to decide that did.",
    followed="\n\nSchedules that use it follow it from then on, for all nominal times that are not decided: a fire is "
    "decided when it is due, a time that does not fire when its local day is over.",
    busy=_demand_unused,
)
_TENANTS = Named(
    Tenant,
    TenantBody,
    AdminOfAll,
    lambda services: services.tenants,
    patch={"max_running": None},
    left=". Its jobs go on, without a quota.",
    own=True,
)
ROUTERS = [named_routes(_DEFINITIONS), named_routes(_LANES), named_routes(_CALENDARS), named_routes(_TENANTS)]
