"""The forecasts of this replica, shared by all that ask for one.

One forecast of a day and one of a week are kept. While clients ask for them, `Forecasts.keep_fresh` makes them again
when they are older than `FRESH_MS`, in slices (`hascheduler.api.routing.time_slicing`), and rests `REST` times as long
as that took: however many clients ask, a replica spends about a twentieth of one core on them. So an answer waits for
a forecast only at the very first request, and at the next one after a long time without requests.

The part of one tenant or lane costs a look at its schedules alone, one request at a time, once for each tenant and
lane; a name that no schedule has costs nothing.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field

import structlog

from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.dispatch.forecast.forecast import Forecast, make_forecast
from hascheduler.dispatch.forecast.shares import Shares, shares_of
from hascheduler.model.schedule import ScheduleRef
from hascheduler.ports import Clock, ClusterView

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
FRESH_MS = {DAY_MS: 10_000, WEEK_MS: 60_000}
"""By how far it looks, how old a forecast may be before it is made again."""
STALE_MS = {DAY_MS: 300_000, WEEK_MS: 900_000}
"""… and from what age on no client gets it any more: more than a busy replica rests between two of them."""
REST = 20
_LOOK_EVERY_S = 1.0
_SHARES_MAX = 256
_AT_ONCE_MAX = 8
"""Parts that a new forecast has from the beginning, of those that were asked for last."""
_SLICE = 1_000
_MORE_MS = 3_600_000
"""A forecast looks further than anybody asks, as it is asked for until the next one is made."""

_Owner = tuple[str | None, str | None]
"""A tenant and a lane; None: any."""
_Places = dict[tuple[str, str], list[int]]
_ALL: _Owner = (None, None)

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Kept:
    forecast: Forecast
    made_at_ms: int
    asked: "OrderedDict[_Owner, None]" = field(default_factory=OrderedDict)
    """The tenants and lanes whose part was asked for since it was made."""
    places: _Places | None = None
    shares: "OrderedDict[_Owner, Shares]" = field(default_factory=OrderedDict)


class Forecasts:
    """Owner of the forecasts that are kept."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        self._turn = asyncio.Lock()
        self._asked = asyncio.Event()

    async def of(
        self, ahead_ms: int, tenant: str | None, lane: str | None, view: ClusterView, clock: Clock
    ) -> tuple[Forecast, Shares, Shares]:
        """A forecast of at least ``ahead_ms``, and what the schedules of that tenant and lane have in it, and all."""
        span_ms = DAY_MS if ahead_ms <= DAY_MS else WEEK_MS
        self._asked.set()
        kept = self._kept.get(span_ms)
        if kept is None or _age_ms(kept, clock) >= STALE_MS[span_ms]:
            async with self._turn:
                kept = self._kept.get(span_ms)
                if kept is None or _age_ms(kept, clock) >= STALE_MS[span_ms]:
                    kept = self._kept[span_ms] = await _made(span_ms, view, clock, ())
        owner = (tenant, lane)
        kept.asked[owner] = None
        kept.asked.move_to_end(owner)
        if len(kept.asked) > _SHARES_MAX:
            kept.asked.popitem(last=False)
        if owner not in kept.shares:
            async with self._turn:
                if owner not in kept.shares:
                    await _add_shares(kept, owner)
        kept.shares.move_to_end(owner)
        return kept.forecast, kept.shares[owner], kept.shares[_ALL]

    async def keep_fresh(self, view: ClusterView, clock: Clock) -> None:
        """Make forecasts again that have become old, for as long as clients ask for them."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            began_ms = clock.mono_ms()
            for span_ms, kept in list(self._kept.items()):
                if kept.asked and _age_ms(kept, clock) >= FRESH_MS[span_ms]:
                    try:
                        again = await _made(span_ms, view, clock, list(kept.asked)[-_AT_ONCE_MAX:])
                    except Exception:  # a replica that leads must not end because of a forecast
                        log.exception("forecast_failed")
                        del self._kept[span_ms]
                    else:
                        self._kept[span_ms] = again
            took_s = (clock.mono_ms() - began_ms) / 1_000
            await asyncio.sleep(max(_LOOK_EVERY_S, REST * took_s))


def _age_ms(kept: _Kept, clock: Clock) -> int:
    return clock.mono_ms() - kept.made_at_ms


async def _made(span_ms: int, view: ClusterView, clock: Clock, owners: Iterable[_Owner]) -> _Kept:
    """A forecast with the parts of ``owners`` in it, which are likely to be asked for."""
    forecast = await run_in_slices(make_forecast(view.forecast_inputs(), span_ms + _MORE_MS))
    kept = _Kept(forecast, clock.mono_ms())
    for owner in dict.fromkeys([_ALL, *owners]):
        await _add_shares(kept, owner)
    return kept


async def _add_shares(kept: _Kept, owner: _Owner) -> None:
    schedules = kept.forecast.inputs.schedules
    places: Iterable[int] = range(len(schedules))
    if owner != _ALL:
        if kept.places is None:
            kept.places = await run_in_slices(_by_owner(schedules))
        places = _owned(kept.places, *owner)
    kept.shares[owner] = await run_in_slices(shares_of(kept.forecast, places))
    kept.shares.move_to_end(_ALL)
    if len(kept.shares) > _SHARES_MAX:
        kept.shares.popitem(last=False)


def _by_owner(schedules: Sequence[ScheduleRef]) -> Generator[None, None, _Places]:
    found: _Places = {}
    for place, schedule in enumerate(schedules):
        if place % _SLICE == _SLICE - 1:
            yield
        found.setdefault((schedule.template.tenant, schedule.template.lane), []).append(place)
    return found


def _owned(places: _Places, tenant: str | None, lane: str | None) -> list[int]:
    return [
        place
        for (its_tenant, its_lane), its_places in places.items()
        if tenant in (None, its_tenant) and lane in (None, its_lane)
        for place in its_places
    ]
