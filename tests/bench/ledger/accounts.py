"""What one load cost: CPU by process and by part, MongoDB's commands, switches and turns; and what of it is the rest.

A span is what was spent between two looks, of all processes together. Parts are shares of the CPU that the kernel
counted, by samples, so the parts of a kind sum to its CPU. What is spent at rest is taken off part by part, at most
what the part spent under load: a loop that is busy anyway is not woken for its timer. So what is left, and the rest,
sum to the whole again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tests.bench.ledger.parts import Share

LOAD = "load"
"""The kind whose CPU is no job's cost."""
NOT_SAMPLED = "not sampled"


@dataclass(frozen=True, slots=True)
class Spent:
    """Of all processes of one kind. ``parts_s`` sum to ``cpu_s``; ``sampling_s`` is the part of it that the sampler
    took."""

    processes: int
    cpu_s: float
    parts_s: Mapping[Share, float]
    voluntary: int
    involuntary: int
    turns: float = 0.0
    samples: int = 0
    sampling_s: float = 0.0

    def of_parts(self) -> dict[str, float]:
        parts: Counter[str] = Counter()
        for share, spent_s in self.parts_s.items():
            parts[share.part] += spent_s  # type: ignore[assignment]  # seconds: a counter adds what it is given
        return dict(parts)


@dataclass(frozen=True, slots=True)
class Span:
    """``jobs`` are those that started in it, by the handlers' own effects."""

    label: str
    seconds: float
    jobs: int
    kinds: Mapping[str, Spent]
    operations: Mapping[str, int]
    commands: Mapping[str, int]
    bytes_in: int
    bytes_out: int

    @property
    def cpu_s(self) -> float:
        """Of all kinds but the load."""
        return sum(spent.cpu_s for kind, spent in self.kinds.items() if kind != LOAD)


@dataclass(frozen=True, slots=True)
class Net:
    """CPU in seconds. ``parts_s`` are without what is spent at rest; with ``rest_s`` they sum to the kind's CPU."""

    parts_s: Mapping[str, float]
    rest_s: float


def shared_out(cpu_s: float, weights: Mapping[Share, float]) -> dict[Share, float]:
    """``cpu_s`` by weight."""
    whole = sum(weights.values())
    if not whole:
        return {Share(NOT_SAMPLED, NOT_SAMPLED): cpu_s}
    return {share: cpu_s * weight / whole for share, weight in weights.items()}


def net_of(spent: Spent, at_rest: Spent | None, scale: float) -> Net:
    """``scale`` is how much longer the span was than the rest."""
    rest = {} if at_rest is None else at_rest.of_parts()
    parts = spent.of_parts()
    taken = {part: min(spent_s, rest.get(part, 0.0) * scale) for part, spent_s in parts.items()}
    return Net({part: spent_s - taken[part] for part, spent_s in parts.items()}, sum(taken.values()))


def net_of_all(span: Span, rest: Span) -> dict[str, Net]:
    """By kind."""
    scale = span.seconds / rest.seconds
    return {kind: net_of(spent, rest.kinds.get(kind), scale) for kind, spent in span.kinds.items()}


def together(spent: Sequence[Spent]) -> Spent:
    """Several processes as one kind."""
    return replace(_summed(spent), processes=sum(each.processes for each in spent))


def summed(spans: Sequence[Span]) -> Span:
    """Several runs of one load as one."""
    kinds = dict.fromkeys(kind for span in spans for kind in span.kinds)
    return Span(
        spans[0].label,
        sum(span.seconds for span in spans),
        sum(span.jobs for span in spans),
        {kind: _summed([span.kinds[kind] for span in spans if kind in span.kinds]) for kind in kinds},
        _added([span.operations for span in spans]),
        _added([span.commands for span in spans]),
        sum(span.bytes_in for span in spans),
        sum(span.bytes_out for span in spans),
    )


def figures_of(span: Span, rest: Span) -> dict[str, Any]:
    """Flat, by name, for the results of benchmarks; per job unless the name says otherwise."""
    kinds, jobs = span.kinds, span.jobs
    operations = sum(span.operations.values())
    figures: dict[str, Any] = {
        "jobs_per_s": round(jobs / span.seconds, 1),
        **{f"{kind}_cpu_percent": round(100 * spent.cpu_s / span.seconds, 2) for kind, spent in kinds.items()},
        "mongodb_ops_per_s": round(operations / span.seconds, 1),
    }
    if not jobs:
        return figures
    nets = net_of_all(span, rest)
    rest_s = sum(net.rest_s for kind, net in nets.items() if kind != LOAD)
    return figures | {
        "cpu_ms_per_job": round(1_000 * span.cpu_s / jobs, 3),
        "at_rest_cpu_ms_per_job": round(1_000 * rest_s / jobs, 3),
        **{f"{kind}_cpu_ms_per_job": round(1_000 * spent.cpu_s / jobs, 3) for kind, spent in kinds.items()},
        "mongodb_ops_per_job": round(operations / jobs, 3),
        **{f"mongodb_{name}_per_job": round(count / jobs, 3) for name, count in span.operations.items()},
        "mongodb_bytes_in_per_job": round(span.bytes_in / jobs),
        "mongodb_bytes_out_per_job": round(span.bytes_out / jobs),
        "switches_per_job": round(sum(each.voluntary + each.involuntary for each in kinds.values()) / jobs, 2),
        "turns_per_job": round(sum(each.turns for each in kinds.values()) / jobs, 2),
    }


def as_json(span: Span, rest: Span) -> dict[str, Any]:
    """All of it, per job and per second."""
    nets = net_of_all(span, rest)
    per = {"job": span.jobs, "second": span.seconds}
    return {
        "seconds": round(span.seconds, 3),
        "jobs": span.jobs,
        "kinds": {
            kind: {
                "processes": spent.processes,
                "samples": spent.samples,
                "sampling_percent": round(100 * spent.sampling_s / spent.cpu_s, 2) if spent.cpu_s else 0.0,
                "at_rest_cpu_ms": _each(1_000 * nets[kind].rest_s, per),
                "cpu_ms": _each(1_000 * spent.cpu_s, per),
                "voluntary_switches": _each(spent.voluntary, per),
                "involuntary_switches": _each(spent.involuntary, per),
                "turns": _each(spent.turns, per),
                "parts_cpu_ms": {part: _each(1_000 * part_s, per) for part, part_s in nets[kind].parts_s.items()},
                "rooms_cpu_ms": {
                    share.part: {
                        other.room: _each(1_000 * room_s, per)
                        for other, room_s in spent.parts_s.items()
                        if other.part == share.part
                    }
                    for share in spent.parts_s
                },
            }
            for kind, spent in span.kinds.items()
        },
        "mongodb": {
            "commands": {name: _each(count, per) for name, count in span.commands.items()},
            "operations": {name: _each(count, per) for name, count in span.operations.items()},
            "bytes_in": _each(span.bytes_in, per),
            "bytes_out": _each(span.bytes_out, per),
        },
    }


def _each(value: float, per: Mapping[str, float]) -> dict[str, float]:
    return {f"per_{name}": round(value / count, 4) for name, count in per.items() if count}


def _summed(spent: Sequence[Spent]) -> Spent:
    """But for ``processes``, which are the first one's."""
    numbers = {field.name for field in fields(Spent)} - {"parts_s", "processes"}
    sums = {name: sum(getattr(each, name) for each in spent) for name in numbers}
    return replace(spent[0], parts_s=_added([each.parts_s for each in spent]), **sums)


def _added(counts: Sequence[Mapping[Any, Any]]) -> dict[Any, Any]:
    added: dict[Any, Any] = {}
    for each in counts:
        for name, count in each.items():
            added[name] = added.get(name, 0) + count
    return added
