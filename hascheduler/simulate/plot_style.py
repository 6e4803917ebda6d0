"""The colours of a picture (fairness keys, or where there is only one, what else tells jobs apart) and its time
axis."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hascheduler.simulate.outcome import JobRecord, RunOutcome
from hascheduler.simulate.scenario import ScenarioJob, account_names

OTHERS = "#9a9a9a"
INK = "#2b2b2b"
_COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a5195", "#b5a200", "#8c564b", "#003f5c",
)  # fmt: skip
"""After Okabe and Ito, distinct to colour-blind people too, and some more."""

_KEY = "fairness key"
_KINDS: tuple[tuple[str, Callable[[ScenarioJob], str]], ...] = (
    ("lane", lambda job: job.lane),
    ("definition", lambda job: job.definition),
    ("mode", lambda job: job.mode),
    ("priority", lambda job: str(job.priority)),
)


@dataclass(frozen=True, slots=True)
class Palette:
    """``kind`` is what the colours tell apart; ``colours`` has those that work took most of, the others are grey."""

    kind: str
    group: Callable[[ScenarioJob], str]
    colours: dict[str, str]
    has_others: bool

    def of(self, job: ScenarioJob) -> str:
        return self.colours.get(self.group(job), OTHERS)

    @property
    def groups(self) -> list[str | None]:
        """The groups with a colour of their own, in order, and None for all others, where there are some."""
        return [*self.colours, *([None] if self.has_others else [])]

    def known(self, job: ScenarioJob) -> str | None:
        """The job's group; None: one of the others."""
        group = self.group(job)
        return group if group in self.colours else None

    @property
    def tells_keys(self) -> bool:
        return self.kind == _KEY

    def label(self, group: str) -> str:
        return shortened(group) or f"no {self.kind}"


def palette_of(outcomes: Sequence[RunOutcome]) -> Palette:
    """One that fits all of them, which are runs of the same jobs."""
    records = [record for outcome in outcomes[:1] for record in outcome.jobs]
    called = account_names(job for outcome in outcomes[:1] for job in outcome.scenario.jobs)
    by_key = (_KEY, lambda job: called(job.tenant, job.fairness_key))
    kinds: tuple[tuple[str, Callable[[ScenarioJob], str]], ...] = (by_key, *_KINDS)
    kind, group = next(
        ((kind, group) for kind, group in kinds if len({group(record.job) for record in records}) > 1), by_key
    )
    weights: Counter[str] = Counter()
    for record in records:
        weights[group(record.job)] += 1 + _worked_ms(record)
    chosen = [name for name, _ in weights.most_common(len(_COLOURS))]
    order = [name for name in dict.fromkeys(group(record.job) for record in records) if name in chosen]
    colours = dict(zip(order, _COLOURS, strict=False))
    return Palette(kind, group, colours, has_others=len(weights) > len(colours))


def ink_on(colour: str) -> str:
    """What can be read on it."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return INK if 299 * red + 587 * green + 114 * blue > 140_000 else "white"


def shortened(text: str, longest: int = 24) -> str:
    """``text`` without what a drawing would take for a formula."""
    text = text.replace("$", r"\$")
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _worked_ms(record: JobRecord) -> int:
    return sum((each.ended_at_ms or each.started_at_ms) - each.started_at_ms for each in record.attempts)


_UNITS = ((3 * 3_600_000, 3_600_000, "hours"), (300_000, 60_000, "minutes"), (0, 1_000, "seconds"))


@dataclass(frozen=True, slots=True)
class TimeScale:
    """``end`` is the end of the longest run, in ``unit``."""

    unit_ms: int
    unit: str
    end: float

    def of(self, at_ms: int) -> float:
        return at_ms / self.unit_ms


def time_scale(outcomes: Sequence[RunOutcome]) -> TimeScale:
    """Long enough for all of them; a rest in which nothing is left to happen is left out."""
    end_ms = max(1, *(_last_ms(outcome) for outcome in outcomes))
    unit_ms, unit = next((ms, name) for least, ms, name in _UNITS if end_ms >= least)
    return TimeScale(unit_ms, unit, end_ms / unit_ms)


def _last_ms(outcome: RunOutcome) -> int:
    is_over = all(record.finished_at_ms is not None for record in outcome.jobs)
    return max((record.finished_at_ms or 0 for record in outcome.jobs), default=0) if is_over else outcome.ended_at_ms
