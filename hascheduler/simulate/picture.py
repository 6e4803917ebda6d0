"""Runs of the same jobs as one document, for a page that draws them side by side: figures and pictures.

It has what `hascheduler simulate` prints and draws. However large the runs are, their pictures are small: of many bars
the longest are kept, of many lines a sample, of many instants one each step; what is left out is counted. All times are
whole milliseconds from the beginning of the run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from heapq import nlargest
from typing import Any

from hascheduler.model.policy import Criterion
from hascheduler.simulate.outcome import RunOutcome, as_document
from hascheduler.simulate.overtaking import Promise
from hascheduler.simulate.plot_style import Palette, palette_of, time_scale
from hascheduler.simulate.report import RunReport, WaitFigures, differences, report
from hascheduler.simulate.series import is_scored, lines_of, rows_of, sample, waiting_counts

BARS_MAX = 1_500
ROWS_MAX = 100
INSTANTS_MAX = 300
COSTS_MAX = 12
WAITS_MAX = 20
"""The most waits of one kind: the longest, as the command prints them."""
POINT_DIGITS = 3


def comparison_document(outcomes: Sequence[RunOutcome]) -> dict[str, Any]:
    """All runs, the differences of each from the first, and the groups that the colours of their pictures tell
    apart."""
    palette = palette_of(outcomes)
    scale = time_scale(outcomes)
    return {
        "note": outcomes[0].scenario.note,
        "until_ms": round(scale.end * scale.unit_ms),
        "kind": palette.kind,
        "groups": [
            {
                "name": "others" if group is None else group or f"no {palette.kind}",
                "colour": None if group is None else palette.colours[group],
            }
            for group in palette.groups
        ],
        "runs": [_run(outcome, outcomes[0], palette) for outcome in outcomes],
    }


def _run(outcome: RunOutcome, first: RunOutcome, palette: Palette) -> dict[str, Any]:
    moved = None if outcome is first else differences(first, outcome)
    return {
        "policy": outcome.scenario.policy.name,
        "report": report_document(report(outcome)),
        "moved": None
        if moved is None
        else {
            **asdict(moved),
            "most_sooner": _shift(moved.most_sooner),
            "most_later": _shift(moved.most_later),
        },
        "picture": _picture(outcome, palette),
        "outcome": as_document(outcome),
    }


def _shift(most: tuple[str, int] | None) -> dict[str, Any] | None:
    return None if most is None else {"job": most[0], "by_ms": most[1]}


def report_document(found: RunReport) -> dict[str, Any]:
    """The figures that the command prints; fractions as numbers."""
    groups = {
        "tenant": found.waits_by_tenant if len(found.waits_by_tenant) > 1 else (),
        "key": found.waits_by_key,
        "lane": found.waits_by_lane,
        "tier": found.waits_by_tier,
        "mode": found.waits_by_mode,
    }
    return {
        "ended_at_ms": found.ended_at_ms,
        "jobs": found.jobs,
        "completed": found.completed,
        "running": found.running,
        "pending": found.pending,
        "lost": found.lost,
        "gave_up": found.gave_up,
        "expired": found.expired,
        "unschedulable": len(found.unschedulable),
        "per_hour": _number(found.per_hour),
        "utilisation": _number(found.utilisation),
        "waits": _waits("all", [found.waits])
        + [row for kind, waits in groups.items() for row in _waits(kind, _longest(waits))],
        "processors": [
            {
                "processor": use.processor,
                "slots": use.slots,
                "runs": use.runs,
                "lost": use.lost,
                "used": _number(use.share),
            }
            for use in found.uses[:ROWS_MAX]
        ],
        "overtakes": {
            "times": found.overtakes.times,
            "jobs": found.overtakes.jobs,
            "most": found.overtakes.most,
            "unluckiest": found.overtakes.unluckiest,
        },
        "starved": found.starved,
        "promises": [_promise(each) for each in found.promises],
    }


def _waits(kind: str, found: Iterable[WaitFigures]) -> list[dict[str, Any]]:
    return [{"kind": kind, **asdict(each)} for each in found]


def _longest(found: Sequence[WaitFigures]) -> list[WaitFigures]:
    kept = sorted(found, key=lambda each: each.longest_ms, reverse=True)[:WAITS_MAX]
    return [each for each in found if each in kept]


def _promise(promise: Promise) -> dict[str, Any]:
    closest = promise.closest
    return {
        "name": promise.name,
        "held": promise.held if promise.applies else None,
        "closest": None
        if closest is None
        else {"job": closest.job, "by": closest.by, "after_ms": closest.after_ms, "bound_ms": closest.bound_ms},
    }


def _number(value: Fraction) -> float:
    return round(float(value), 4)


def _picture(outcome: RunOutcome, palette: Palette) -> dict[str, Any]:
    numbers = {group: index for index, group in enumerate(palette.groups)}
    rows = rows_of(outcome)
    shown = rows[:ROWS_MAX]
    jobs = {record.job.id: record.job for record in outcome.jobs}
    bars: list[dict[str, Any]] = [
        {
            "row": index,
            "slot": slot,
            "from_ms": attempt.started_at_ms,
            "to_ms": outcome.ended_at_ms if attempt.ended_at_ms is None else attempt.ended_at_ms,
            "group": numbers[palette.known(jobs[attempt.job])],
            "job": attempt.job,
            "lost": attempt.lost,
        }
        for index, row in enumerate(shown)
        for attempt, slot in row.runs
    ]
    kept = nlargest(BARS_MAX, bars, key=_length_ms)
    instants, counts = waiting_counts(outcome, palette)
    return {
        "rows": [
            {
                "processor": row.processor.id,
                "slots": row.slots,
                "join_ms": row.processor.join_at_ms,
                "leave_ms": row.processor.leave_at_ms,
                "drain_ms": row.processor.drain_at_ms,
            }
            for row in shown
        ],
        "rows_left_out": len(rows) - len(shown),
        "bars": sorted(kept, key=lambda bar: (bar["row"], bar["from_ms"], bar["slot"])),
        "bars_left_out": len(outcome.attempts) - len(kept),
        "waiting": _waiting(instants, counts),
        "lines": _lines(outcome, palette, numbers),
        "costs": _costs(outcome, palette, numbers),
        "costs_left_out": max(0, len(outcome.costs) - COSTS_MAX),
    }


def _length_ms(bar: Mapping[str, Any]) -> int:
    return int(bar["to_ms"] - bar["from_ms"])


def _waiting(instants: Sequence[int], counts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The jobs that wait; of each step of many instants, the one at which most of them do."""
    places: Sequence[int] = range(len(instants))
    if len(instants) > INSTANTS_MAX:
        totals = [sum(each) for each in zip(*counts, strict=True)]
        best: dict[int, int] = {}
        width = (instants[-1] - instants[0]) / INSTANTS_MAX or 1
        for place, at_ms in enumerate(instants):
            step = int((at_ms - instants[0]) / width)
            if step not in best or totals[place] > totals[best[step]]:
                best[step] = place
        places = sorted({*best.values(), len(instants) - 1})
    return {
        "times_ms": [instants[place] for place in places],
        "counts": [[each[place] for place in places] for each in counts],
    }


def _lines(outcome: RunOutcome, palette: Palette, numbers: Mapping[str | None, int]) -> dict[str, Any] | None:
    """The jobs that wait, as the policy compares them; None: it looks at neither score nor aged priority."""
    if is_scored(outcome):
        by = "score"
    elif Criterion.AGED_PRIORITY in outcome.scenario.policy.criteria:
        by = "aged priority"
    else:
        return None
    found = lines_of(outcome)
    shown = sample([str(numbers[palette.known(record.job)]) for record, _ in found])
    return {
        "by": by,
        "lines": [
            {
                "job": record.job.id,
                "group": numbers[palette.known(record.job)],
                "points": [[at_ms, round(value, POINT_DIGITS)] for at_ms, value in line],
                "dispatched": bool(record.attempts),
            }
            for record, line in (found[index] for index in shown)
        ],
        "left_out": len(found) - len(shown),
    }


def _costs(outcome: RunOutcome, palette: Palette, numbers: Mapping[str | None, int]) -> list[dict[str, Any]]:
    """The accounts that consumed most, dearest first."""
    dearest = sorted(outcome.costs, key=lambda key: outcome.accumulated_cost_ms[key], reverse=True)[:COSTS_MAX]
    return [
        {
            "key": key,
            "group": numbers.get(key) if palette.tells_keys else None,
            "points": _thinned([*outcome.costs[key], (outcome.ended_at_ms, outcome.costs[key][-1][1])]),
        }
        for key in dearest
    ]


def _thinned(points: Sequence[tuple[int, int]]) -> list[list[int]]:
    every = -(-len(points) // INSTANTS_MAX) or 1
    return [list(point) for index, point in enumerate(points) if index % every == 0 or index == len(points) - 1]
