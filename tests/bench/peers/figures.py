"""What the effects of a workload come to."""

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from hascheduler.demo.evidence import Effect
from hascheduler.simulate.report import percentile

GRACE_MS = 3_000
BEFORE_KILL_MS = 2_000
"""What was due so shortly before a kill is counted with it: it may be lost or run twice because of it."""

Figures = dict[str, Any]


def throughput_of(effects: Sequence[Effect], jobs: int, begin_ms: int) -> Figures:
    """From the first submit to the last effect; what had not run by then is ``lost``."""
    ran = Counter(effect.job_id for effect in effects)
    last_ms = max((effect.at_ms for effect in effects), default=begin_ms)
    return {
        "jobs_per_s": round(1_000 * len(ran) / max(1, last_ms - begin_ms)),
        "lost": jobs - len(ran),
        "doubled": ran.total() - len(ran),
    }


def fires_of(effects: Sequence[Effect], schedules: int, from_ms: int, until_ms: int) -> Figures:
    """Schedules of a period of 1 s over ``from_ms`` < time ≤ ``until_ms``: what was not fired or twice, and the lag.

    No schedule makes up for another one: one that fired too often counts as if it had fired as often as expected.
    """
    fires = _fires(effects, from_ms, until_ms)
    each = (until_ms - from_ms) // 1_000
    fired = _fired(fires, each)
    known = all(fire.nominal_ms is not None for fire in fires)
    lags = [fire.lag_ms for fire in fires]
    return {
        "expected": schedules * each,
        "not_fired": schedules * each - fired,
        "not_fired_percent": round(100 * (1 - fired / (schedules * each)), 2),
        "doubled": len(fires) - len({fire.job_id for fire in fires}) if known else None,
        "lag_p50_ms": percentile(lags, 50) if known and fires else None,
        "lag_p99_ms": percentile(lags, 99) if known and fires else None,
    }


def kill_of(effects: Sequence[Effect], schedules: int, killed_at_ms: int, until_ms: int) -> Figures:
    """How long after a kill each schedule had its first effect for a later nominal time; what was lost or doubled."""
    first: dict[str, int] = {}
    for fire in _fires(effects, killed_at_ms, until_ms):
        name = _schedule_of(fire)
        first[name] = min(first.get(name, fire.at_ms), fire.at_ms)
    waits = [at_ms - killed_at_ms for at_ms in first.values()]
    around = fires_of(effects, schedules, killed_at_ms - BEFORE_KILL_MS, until_ms)
    return {
        "resumed_p50_ms": percentile(waits, 50),
        "resumed_last_ms": max(waits, default=0),
        "never_resumed": schedules - len(first),
        **{name: around[name] for name in ("expected", "not_fired", "doubled")},
    }


def failover_of(kills: Sequence[Figures]) -> Figures:
    """Several kills together: medians and the worst of times, and sums of counts."""
    last = [kill["resumed_last_ms"] for kill in kills]
    return {
        "kills": len(kills),
        "resumed_p50_ms": round(median(kill["resumed_p50_ms"] for kill in kills)),
        "resumed_last_ms": round(median(last)),
        "resumed_last_worst_ms": max(last),
        **{name: sum(kill[name] for kill in kills) for name in ("never_resumed", "expected", "not_fired", "doubled")},
    }


def _fires(effects: Sequence[Effect], from_ms: int, until_ms: int) -> list[Effect]:
    """Those whose nominal time, or where it is unknown the time of the effect, lies in between."""
    return [
        effect
        for effect in effects
        if effect.job_id.startswith("fire:")
        and from_ms < (effect.at_ms if effect.nominal_ms is None else effect.nominal_ms) <= until_ms
    ]


def _fired(fires: Sequence[Effect], each: int) -> int:
    """How many different ones there were, at most ``each`` for a schedule."""
    different = {fire.job_id: _schedule_of(fire) for fire in fires}
    return sum(min(each, count) for count in Counter(different.values()).values())


def _schedule_of(fire: Effect) -> str:
    return fire.job_id.split(":")[1]
