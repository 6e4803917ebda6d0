"""The parts of a forecast: the fires of one tenant or lane by minute, and the schedules that make a peak."""

import heapq
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hascheduler.dispatch.forecast.fires import Key, Minutes
from hascheduler.dispatch.forecast.forecast import Forecast

CONTRIBUTORS_MAX = 5
_SLICE = 1_000


@dataclass(frozen=True, slots=True)
class Contributor:
    """A schedule whose ``fires`` within a peak make ``jobs``, which are expected to take ``work_ms`` together."""

    schedule: str
    fires: int
    jobs: int
    work_ms: int


@dataclass(frozen=True, slots=True)
class Shares:
    """The part of some schedules: by step their ``fires``; by peak those that make the most work of it, the most first,
    and how many ``jobs`` all of them make of it."""

    fires: list[int]
    contributors: tuple[tuple[Contributor, ...], ...]
    jobs: tuple[int, ...]


def shares_of(forecast: Forecast, places: Iterable[int]) -> Generator[None, None, Shares]:
    """The part that schedules have in the forecast, by their places in its inputs; it yields every few milliseconds."""
    known, peaks, schedules, keys = forecast.known, forecast.peaks, forecast.inputs.schedules, forecast.keys
    count_of: dict[Key, int] = {}
    peaks_at: dict[int, list[int]] = {}
    for place, peak in enumerate(peaks):
        for step in range(peak.first, peak.worst + 1):
            peaks_at.setdefault(step, []).append(place)
    fired_in: dict[Key, list[tuple[int, int]]] = {}
    largest: list[list[tuple[int, str, Contributor]]] = [[] for _ in peaks]
    jobs = [0] * len(peaks)
    for number, at in enumerate(places):
        if number % _SLICE == _SLICE - 1:
            yield
        key = keys[at]
        if key is None:
            continue
        count_of[key] = count_of.get(key, 0) + 1
        if key not in fired_in:
            fired_in[key] = _fired_in(known.minutes(key), peaks_at)
        for place, fires in fired_in[key]:
            schedule = schedules[at]
            its_own = [job for job in known.jobs(schedule) if job.flow in peaks[place].flows]
            if its_own:
                work_ms = fires * sum([job.cost_ms for job in its_own])
                one = Contributor(schedule.name, fires, fires * len(its_own), work_ms)
                jobs[place] += one.jobs
                _keep(largest[place], (work_ms, one.schedule, one))
    fires_by_step = [0] * forecast.steps
    for key, count in count_of.items():
        for step, fired in known.minutes(key):
            if 0 <= step < forecast.steps:
                fires_by_step[step] += fired * count
    ordered = [sorted(kept, key=_most_first) for kept in largest]
    return Shares(fires_by_step, tuple([tuple([one for _, _, one in kept]) for kept in ordered]), tuple(jobs))


def _keep(kept: list[tuple[int, str, Contributor]], one: tuple[int, str, Contributor]) -> None:
    if len(kept) < CONTRIBUTORS_MAX:
        heapq.heappush(kept, one)
    else:
        heapq.heappushpop(kept, one)


def _most_first(kept: tuple[int, str, Contributor]) -> tuple[int, str]:
    return -kept[0], kept[1]


def _fired_in(minutes: Minutes, peaks_at: Mapping[int, Sequence[int]]) -> list[tuple[int, int]]:
    """In which peaks schedules that fire in those minutes have a part, and how often they fire in each."""
    found: dict[int, int] = {}
    for step, fired in minutes:
        for place in peaks_at.get(step, ()):
            found[place] = found.get(place, 0) + fired
    return list(found.items())
