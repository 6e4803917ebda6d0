"""In no span does more start than one bucket of a rate allows, burst included: over all shards, as the rate is."""

from collections.abc import Iterable
from heapq import merge

from hascheduler.model.definition import RateLimit


def rates_kept(
    started_s: Iterable[float], limit: RateLimit, *, full_again_s: Iterable[float] = (), clock_rate: float = 1.0
) -> list[str]:
    """What is wrong with starts at those times, which rise. ``clock_rate`` is how fast a clock may have run. At
    ``full_again_s`` the bucket counts as full, as that of a new leader may be: what came before tells nothing then."""
    level, at_s, wrong = float(limit.count), 0.0, []
    events = merge(((at_s, False) for at_s in full_again_s), ((at_s, True) for at_s in started_s))
    for number, (now_s, is_start) in enumerate(events):
        gained = (now_s - at_s) * 1_000 * clock_rate * limit.count / limit.per_ms
        level, at_s = min(limit.count, level + gained), now_s
        if not is_start:
            level = limit.count
        elif level < 1 - 1e-6:
            wrong.append(
                f"start {number} at {now_s:.3f} s of {limit.count} in {limit.per_ms} ms: {level:.2f} were left"
            )
        else:
            level -= 1
    return wrong
