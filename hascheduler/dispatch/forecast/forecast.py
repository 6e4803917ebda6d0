"""The forecast of a whole cluster: what arrives each minute, what becomes of it, and where it is too much."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from hascheduler.dispatch.forecast.fires import FiresAhead, Key, Minutes, evenly
from hascheduler.dispatch.forecast.inputs import ForecastInputs
from hascheduler.dispatch.forecast.pools import Flow, SlotPools, offered_slots
from hascheduler.dispatch.forecast.queueing import STEP_MS, AlikeJobs, Service, congestions, serve
from hascheduler.model.schedule import ScheduleRef
from hascheduler.model.values.instants import WallMs

PEAKS_MAX = 20
ADDED_MAX = 1_000_000
"""How many (minute, kind of job) are added up at most; the fires of the triggers after that are spread evenly."""
_SLICE = 64
_CLASSES = 64


class LimitedBy(StrEnum):
    """Why jobs wait."""

    SLOTS = "slots"
    """More of them want to run than live processors have slots for."""
    MAX_CONCURRENCY = "max_concurrency"
    """More of one definition want to run than may run at once, or than have slots that take them."""
    NO_PROCESSOR = "no_processor"
    """No live processor takes them."""


@dataclass(frozen=True, slots=True)
class Peak:
    """From ``from_ms`` jobs wait for more than a minute, until all have begun at ``until_ms`` (None: not by the end of
    the forecast).

    ``jobs`` want to run when it is worst, for ``slots``, and ``waiting`` of them wait. ``more_slots`` would let them
    all begin. ``definition`` is the one whose cap it is; None: not one definition's. ``flows`` are those of the jobs
    that arrive in the steps ``first`` through ``worst``.
    """

    from_ms: WallMs
    until_ms: WallMs | None
    lasts_ms: int
    jobs: int
    waiting: int
    slots: int
    more_slots: int
    limited_by: LimitedBy
    definition: str | None
    flows: frozenset[int]
    first: int
    worst: int


class JobToCome(NamedTuple):
    """One of the jobs that a fire makes: ``offset`` steps after the fire, when those that it waits for have had their
    time."""

    flow: int
    cost_ms: int
    offset: int


@dataclass(slots=True)
class Forecast:
    """By step, from the minute ``origin`` on (counted from 1970): the ``fires`` and the ``jobs`` that arrive, the
    slots ``wanted``, the jobs ``waiting`` at its end, the longest ``waits`` of those that arrive, in steps.

    ``peaks`` are the worst, in order of time. ``left_out`` schedules are not in it, as their times are not known;
    ``spread`` ones are, evenly. ``known`` and ``keys``, in the order of the schedules of the inputs, are what
    `hascheduler.dispatch.forecast.shares` goes on with: None is one that does not fire.
    """

    inputs: ForecastInputs
    origin: int
    steps: int
    slots: int
    fires: list[int]
    jobs: list[int]
    wanted: list[int]
    waiting: list[int]
    waits: list[int]
    peaks: tuple[Peak, ...]
    left_out: int
    spread: int
    known: "KnownFires"
    keys: list[Key | None]


class KnownFires:
    """The fires of each schedule, and the flows of its jobs. Owner of what is known of triggers, costs and pools."""

    def __init__(self, inputs: ForecastInputs, ahead_ms: int) -> None:
        self._inputs = inputs
        self._fires = FiresAhead(inputs.now, inputs.now + ahead_ms, inputs.calendars)
        self.pools = SlotPools(offered_slots(inputs.slots), inputs.definitions, inputs.slots_max)
        self.origin, self.steps = self._fires.origin, self._fires.steps

    def key(self, schedule: ScheduleRef) -> Key | None:
        """Schedules of one key fire in the same minutes; None: it does not fire."""
        return self._fires.key(schedule)

    def is_unknown(self, key: Key) -> bool:
        return self._fires.is_unknown(key)

    def minutes(self, key: Key) -> Minutes:
        return self._fires.minutes(key)

    def spread(self, key: Key) -> int:
        return self._fires.spread(key)

    def jobs(self, schedule: ScheduleRef) -> list[JobToCome]:
        """The jobs that one fire makes, each after those that it waits for."""
        graph, inputs, name = schedule.graph, self._inputs, schedule.name
        if graph is None:
            template = schedule.template
            cost_ms = inputs.cost_ms(template.definition, template.target_of(name))
            return [JobToCome(self.pools.flow(template.definition).number, cost_ms, 0)]
        made: list[JobToCome] = []
        ends_ms: dict[str, int] = {}
        for job in graph.in_order:
            definition = job.template.definition
            cost_ms = inputs.cost_ms(definition, job.template.target_of(name))
            begins_ms = max([ends_ms[ref] for ref in job.depends_on], default=0)
            ends_ms[job.ref] = begins_ms + cost_ms
            made.append(JobToCome(self.pools.flow(definition).number, cost_ms, begins_ms // STEP_MS))
        return made


class _Arrivals:
    """Owner of what arrives in each flow: by step and class of cost (whose costs differ by less than a factor of two),
    how many jobs and how much work."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self.by_flow: dict[int, dict[int, list[int]]] = {}
        self.jobs = [0] * steps

    def add(self, flow: int, step: int, count: int, work_ms: int) -> None:
        """``count`` jobs of about the same cost; those beyond the last step are none of this forecast."""
        if not 0 <= step < self._steps or not count:
            return
        self.jobs[step] += count
        place = step * _CLASSES + min((work_ms // count).bit_length(), _CLASSES - 1)
        kinds = self.by_flow.setdefault(flow, {})
        known = kinds.get(place)
        if known is None:
            kinds[place] = [count, work_ms]
        else:
            known[0] += count
            known[1] += work_ms

    def batches(self, flow: int) -> dict[int, list[AlikeJobs]]:
        """By step, the cheaper ones first."""
        found: dict[int, list[AlikeJobs]] = {}
        kinds = self.by_flow.get(flow, {})
        for place in sorted(kinds):
            count, work_ms = kinds[place]
            found.setdefault(place // _CLASSES, []).append(AlikeJobs(count, max(work_ms // count, 1)))
        return found


@dataclass(slots=True)
class _Demand:
    """The jobs of all schedules of one key: by flow, class of cost and offset, how many a fire makes and their work."""

    schedules: int = 0
    jobs: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)

    def add(self, made: Iterable[JobToCome]) -> None:
        self.schedules += 1
        for flow, cost_ms, offset in made:
            sums = self.jobs.setdefault((flow, cost_ms.bit_length(), offset), [0, 0])
            sums[0] += 1
            sums[1] += cost_ms


def make_forecast(inputs: ForecastInputs, ahead_ms: int) -> Generator[None, None, Forecast]:
    """The forecast of ``ahead_ms`` from ``inputs.now`` on; it yields every few milliseconds."""
    known = KnownFires(inputs, ahead_ms)
    groups: dict[Key, _Demand] = {}
    keys: list[Key | None] = []
    left_out = 0
    means: dict[str, list[int]] = {}
    for number, schedule in enumerate(inputs.schedules):
        if number % _SLICE == _SLICE - 1:
            yield
        key = known.key(schedule)
        if key is not None and known.is_unknown(key):
            key = None
            left_out += 1
        keys.append(key)
        if key is None or not known.minutes(key):
            continue
        made = known.jobs(schedule)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Demand()
        group.add(made)
        sums = means.setdefault(schedule.template.definition, [0, 0])
        sums[0] += 1
        sums[1] += made[-1].cost_ms
    arrivals, fires = _Arrivals(known.steps), [0] * known.steps
    spread = yield from _arrive(groups, known, arrivals, fires)
    for definition, count in inputs.waiting.items():
        if count > 0:
            sums = means.get(definition) or [1, inputs.cost_ms(definition, "")]
            arrivals.add(known.pools.flow(definition).number, 0, count, count * max(sums[1] // sums[0], 1))
    services = yield from _served(inputs, known, arrivals)
    yield
    waits = services.waits()
    yield
    peaks = tuple(_peaks(services, known))
    yield
    forecast = Forecast(
        inputs=inputs,
        origin=known.origin,
        steps=known.steps,
        slots=sum(known.pools.slots),
        fires=fires,
        jobs=arrivals.jobs,
        wanted=[0] * known.steps,
        waiting=[0] * known.steps,
        waits=waits,
        peaks=peaks,
        left_out=left_out,
        spread=spread,
        known=known,
        keys=keys,
    )
    for service in services.pools:
        for step in range(known.steps):
            forecast.wanted[step] += service.wanted[step]
            forecast.waiting[step] += service.waiting[step]
    for _, service in services.capped:
        for step in range(known.steps):
            forecast.waiting[step] += service.waiting[step]
    return forecast


def _arrive(
    groups: Mapping[Key, _Demand], known: KnownFires, arrivals: _Arrivals, fires: list[int]
) -> Generator[None, None, int]:
    """Add up the jobs of all groups; how many schedules had their fires spread evenly, as there are too many."""
    added, spread, since = 0, 0, 0
    for key, group in groups.items():
        minutes, width = known.minutes(key), known.spread(key)
        more = len(minutes) * len(group.jobs) * width
        if added + more > ADDED_MAX:
            spread += group.schedules
            count = sum([fired for _, fired in minutes])
            minutes = tuple(_spread_evenly(count, known.steps))
            width = 1
        added += more
        for nominal, fired in minutes:
            since += len(group.jobs) * width
            if since > 1_000:
                since = 0
                yield
            if 0 <= nominal < known.steps:
                fires[nominal] += fired * group.schedules
            for (flow, _, offset), (made, cost_ms) in group.jobs.items():
                count, work_ms = made * fired, cost_ms * fired
                if width == 1:
                    arrivals.add(flow, nominal + offset, count, work_ms)
                    continue
                for part in range(width):
                    here = evenly(count, width, part)
                    arrivals.add(flow, nominal + offset + part, here, work_ms * here // count)
    return spread


def _spread_evenly(count: int, steps: int) -> Iterator[tuple[int, int]]:
    for part in range(min(count, 24)):
        yield steps * part // min(count, 24), evenly(count, min(count, 24), part)


@dataclass(slots=True)
class _Services:
    """What becomes of the jobs: at the caps of definitions first, then in the pools; ``nowhere`` are those that no live
    processor takes."""

    capped: list[tuple[Flow, Service]]
    pools: list[Service]
    nowhere: Service

    def waits(self) -> list[int]:
        """By step of arrival, the longest wait in steps; whose cap lets them begin late wait for a slot from then
        on."""
        steps = len(self.nowhere.waiting)
        found = [0] * steps
        for service in [*self.pools, self.nowhere]:
            for step, wait in service.waits.items():
                found[step] = max(found[step], wait)
        for flow, service in self.capped:
            assert flow.pool is not None
            then = self.pools[flow.pool].waits
            for step, wait in service.waits.items():
                found[step] = max(found[step], min(wait + then.get(step + wait, 0), steps - step))
        return found


def _served(inputs: ForecastInputs, known: KnownFires, arrivals: _Arrivals) -> Generator[None, None, _Services]:
    running: dict[int, list[AlikeJobs]] = {}
    for job in inputs.running:
        cost_ms = inputs.cost_ms(job.definition, job.target)
        ran_ms = 0 if job.started_at_ms is None else max(inputs.now - job.started_at_ms, 0)
        # One that has run longer than expected may end at any moment.
        running.setdefault(known.pools.flow(job.definition).number, []).append(AlikeJobs(1, max(cost_ms - ran_ms, 1)))
    pools = known.pools
    capped: list[tuple[Flow, Service]] = []
    in_pool = [arrivals.batches(number) for number in range(len(pools.slots))]
    running_in = [list(running.get(number, ())) for number in range(len(pools.slots))]
    for flow in pools.capped:
        its_own, arriving = running.get(flow.number, []), arrivals.batches(flow.number)
        if not its_own and not arriving:
            continue
        yield
        assert flow.pool is not None
        service = yield from serve(arriving, flow.cap, known.steps, its_own)
        capped.append((flow, service))
        running_in[flow.pool] += its_own
        for step, batches in service.began.items():
            in_pool[flow.pool].setdefault(step, []).extend(batches)
    served: list[Service] = []
    for number, slots in enumerate(pools.slots):
        yield
        served.append((yield from serve(in_pool[number], slots, known.steps, running_in[number])))
    nowhere = yield from serve(arrivals.batches(pools.nowhere.number), 0, known.steps)
    return _Services(capped, served, nowhere)


def _peaks(services: _Services, known: KnownFires) -> list[Peak]:
    """The worst, in order of time."""
    found: list[tuple[int, Peak]] = []
    pools = known.pools
    for number, service in enumerate(services.pools):
        flows = frozenset([flow.number for flow in pools.flows if flow.pool == number])
        found += _peaks_of(service, LimitedBy.SLOTS, None, flows, known)
    for flow, service in services.capped:
        found += _peaks_of(service, LimitedBy.MAX_CONCURRENCY, flow.definition, frozenset([flow.number]), known)
    found += _peaks_of(services.nowhere, LimitedBy.NO_PROCESSOR, None, frozenset([pools.nowhere.number]), known)
    found.sort(key=_worst_first)
    return sorted([peak for _, peak in found[:PEAKS_MAX]], key=_in_order)


def _peaks_of(
    service: Service, limited_by: LimitedBy, definition: str | None, flows: frozenset[int], known: KnownFires
) -> list[tuple[int, Peak]]:
    found: list[tuple[int, Peak]] = []
    for each in congestions(service):
        lasts = each.last + 1 - each.first
        peak = Peak(
            from_ms=WallMs((known.origin + each.first) * STEP_MS),
            until_ms=WallMs((known.origin + each.last + 1) * STEP_MS) if each.is_over else None,
            lasts_ms=lasts * STEP_MS,
            jobs=each.jobs,
            waiting=each.waiting,
            slots=service.slots,
            more_slots=max(service.wanted[each.worst] - service.slots, 1),
            limited_by=limited_by,
            definition=definition,
            flows=flows,
            first=each.first,
            worst=each.worst,
        )
        found.append((lasts * each.waiting, peak))
    return found


def _worst_first(found: tuple[int, Peak]) -> tuple[int, int, str]:
    return -found[0], found[1].first, found[1].definition or ""


def _in_order(peak: Peak) -> tuple[int, str, str]:
    return peak.first, peak.limited_by.value, peak.definition or ""
