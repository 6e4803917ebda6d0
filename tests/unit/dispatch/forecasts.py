"""Small worlds to forecast: schedules, definitions and slots, from a Tuesday at midnight on."""

from collections.abc import Mapping, Sequence
from typing import Any

from hascheduler.dispatch.forecast.forecast import Forecast, make_forecast
from hascheduler.dispatch.forecast.inputs import ForecastInputs, OpenSlots
from hascheduler.dispatch.forecast.shares import Shares, shares_of
from hascheduler.dispatch.schedules.previews import finished
from hascheduler.model.definition import Definition
from hascheduler.model.schedule import JobTemplate, ScheduleRef
from hascheduler.model.trigger import Cron, Interval, Once, Pattern, Trigger
from hascheduler.model.values.instants import WallMs

NOW = WallMs(1_893_456_000_000)  # 2030-01-01T00:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
ANY = frozenset({"*"})


def cron(expression: str, zone: str = "UTC", **bounds: Any) -> Trigger:
    return Trigger(Cron(expression, zone), **bounds)


def every(minutes: float, *, at: float = 0, **bounds: Any) -> Trigger:
    """From ``at`` minutes after `NOW` on, and before."""
    return Trigger(Interval(round(minutes * MINUTE_MS), WallMs(NOW + round(at * MINUTE_MS))), **bounds)


def once(minutes: float, **bounds: Any) -> Trigger:
    pattern: Pattern = Once(WallMs(NOW + round(minutes * MINUTE_MS)))
    return Trigger(pattern, **bounds)


def schedule(name: str, trigger: Trigger, definition: str = "log", **only_what_matters: Any) -> ScheduleRef:
    tenant, lane = only_what_matters.pop("tenant", "default"), only_what_matters.pop("lane", "default")
    template = JobTemplate(definition, name, tenant, lane, "key", 5, "queued")
    return ScheduleRef(name, 1, trigger, template, NOW, NOW, NOW, **only_what_matters)


def forecast_of(
    schedules: Sequence[ScheduleRef],
    slots: int | Sequence[OpenSlots] = 1,
    *,
    costs: Mapping[str, int] | None = None,
    definitions: Sequence[Definition] = (),
    ahead_ms: int = DAY_MS,
    **only_what_matters: Any,
) -> Forecast:
    """``costs`` are by target, in ms; one that is not there takes a second."""
    known = costs or {}
    inputs = ForecastInputs(
        now=only_what_matters.pop("now", NOW),
        schedules=schedules,
        definitions={definition.name: definition for definition in definitions},
        calendars=only_what_matters.pop("calendars", {}),
        slots=[OpenSlots(ANY, slots)] if isinstance(slots, int) else slots,
        running=only_what_matters.pop("running", ()),
        waiting=only_what_matters.pop("waiting", {}),
        learned=lambda _, target: known.get(target),
        **only_what_matters,
    )
    return finished(make_forecast(inputs, ahead_ms))


def shares_in(forecast: Forecast, places: Sequence[int] | None = None) -> Shares:
    return finished(shares_of(forecast, range(len(forecast.inputs.schedules)) if places is None else places))
