"""The evidence: expected nominal times, observed effects and stored jobs, and what comparing them shows."""

import json
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hascheduler.errors import WorldError
from hascheduler.model.job import LIVE, fire_job_id, schedule_of
from hascheduler.model.processor import process_of
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.schema.trigger import Trigger
from hascheduler.triggers import next_nominal
from hascheduler.triggers.requests import read_trigger

_EFFECT = b'{"effect"'


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of a handler: it ran attempt ``attempt`` of ``job_id`` at ``at_ms``."""

    job_id: str
    attempt: int
    nominal_ms: int | None
    at_ms: int

    @property
    def schedule(self) -> str:
        """Return the name of the schedule that fired it; "" for another job."""
        return schedule_of(self.job_id) or ""

    @property
    def lag_ms(self) -> int:
        """Return the time from the nominal time to the start of the handler."""
        return self.at_ms - (self.nominal_ms or self.at_ms)


class Effects:
    """The demo's effects, whose job ids begin with ``prefix``, read from the handlers' outputs as they grow."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.all: list[Effect] = []
        self._read: dict[Path, int] = {}

    def read(self, outputs: Iterable[Path]) -> list[Effect]:
        """Return the effects that are new since the last call."""
        found: list[Effect] = []
        for output in outputs:
            found += self._read_one(output)
        self.all += found
        return found

    def _read_one(self, output: Path) -> list[Effect]:
        if not output.exists():
            return []
        with output.open("rb") as file:
            file.seek(self._read.get(output, 0))
            # Leave a line that is still being written for the next call.
            whole = file.read().rpartition(b"\n")[0]
        self._read[output] = self._read.get(output, 0) + (len(whole) + 1 if whole else 0)
        effects = [_read_effect(line, output) for line in whole.splitlines() if line.startswith(_EFFECT)]
        return [effect for effect in effects if effect.job_id.startswith(self.prefix)]


def _read_effect(line: bytes, output: Path) -> Effect:
    try:
        read = json.loads(line)
        return Effect(read["job"], read["attempt"], read["nominal_ms"], read["at_ms"])
    except (ValueError, KeyError, TypeError):
        raise WorldError(
            f"{output} contains a line that is not an effect: {quoted(line.decode(errors='replace'))}"
        ) from None


@dataclass(frozen=True, slots=True)
class Expectation:
    """A schedule as the API returned it at its creation; ``logs`` is True if its jobs write an effect line."""

    name: str
    trigger: Trigger
    created_at_ms: WallMs
    logs: bool
    tenant: str = ""

    @classmethod
    def of(cls, schedule: Mapping[str, Any]) -> "Expectation":
        created_at_ms, job = parse_instant(schedule["created_at"]), schedule["job"]
        trigger = read_trigger(schedule["trigger"], created_at_ms)
        return cls(schedule["name"], trigger, created_at_ms, job["definition"] == "log", job.get("tenant") or "")

    def jobs_until(self, until_ms: int) -> Iterable[str]:
        """Yield the ids of the jobs for its nominal times from its creation up to ``until_ms``."""
        nominal_ms = next_nominal(self.trigger, self.created_at_ms)
        while nominal_ms is not None and nominal_ms <= until_ms:
            yield fire_job_id(self.name, nominal_ms)
            nominal_ms = next_nominal(self.trigger, nominal_ms)


@dataclass(slots=True)
class DemoResult:
    """The result of all nominal times up to the end of the scenario."""

    expected: int = 0
    fired: int = 0
    missed: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    """Jobs that exist and have not ended: late, not lost."""
    doubled: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    """Effects that match no nominal time of any schedule."""
    unseen: list[str] = field(default_factory=list)
    """Jobs that succeeded at a processor whose last output lines are lost."""
    rerun: list[str] = field(default_factory=list)
    """Jobs whose processor was killed and that ran again, with a higher attempt number."""

    @property
    def faulty(self) -> bool:
        return not self.expected or bool(self.missed or self.doubled or self.unexpected)


def evaluate(
    expectations: Iterable[Expectation],
    effects: Iterable[Effect],
    jobs: Mapping[str, Mapping[str, Any]],
    *,
    until_ms: int,
    killed: Mapping[str, int | None],
) -> DemoResult:
    """Compare what happened (``effects``, and the stored ``jobs`` by id) with every nominal time up to ``until_ms``.

    ``killed`` has the ids of the killed processors, and the time from which the output of each may be cut off, if it
    may. Only attempts of their processes may run again, and only there may an effect be unseen.
    """
    verdict = DemoResult()
    processes = {process_of(id) for id in killed}
    attempts_of: dict[str, list[int]] = {}
    for effect in effects:
        if effect.nominal_ms is None or effect.nominal_ms <= until_ms:
            attempts_of.setdefault(effect.job_id, []).append(effect.attempt)
    for expectation in expectations:
        for job_id in expectation.jobs_until(until_ms):
            verdict.expected += 1
            job = jobs.get(job_id)
            seen = attempts_of.pop(job_id, [])
            if job is not None and job["state"] in LIVE:
                verdict.pending.append(job_id)
                if _doubled(job, seen, processes):
                    verdict.doubled.append(job_id)
                continue
            if job is None or job["state"] != "succeeded":
                verdict.missed.append(job_id)
                continue
            if expectation.logs and not seen:
                cut_ms = killed.get(_succeeded_at(job))
                if cut_ms is None or int(job_id.rpartition(":")[2]) < cut_ms:
                    verdict.missed.append(job_id)
                    continue
                verdict.unseen.append(job_id)
            verdict.fired += 1
            if job["attempt"] > 1:
                verdict.rerun.append(job_id)
            if _doubled(job, seen, processes):
                verdict.doubled.append(job_id)
    verdict.unexpected = sorted(attempts_of)
    return verdict


def _succeeded_at(job: Mapping[str, Any]) -> str:
    """Return the processor that reported success; "" if the job does not name it."""
    return next((str(record["processor"]) for record in job["attempts"] if record["outcome"] == "succeeded"), "")


def _doubled(job: Mapping[str, Any], seen: list[int], killed: Set[str]) -> bool:
    """Return True if an attempt ran twice, or if two ran and the earlier one was not lost with its processor."""
    records = job["attempts"]
    succeeded = [record for record in records if record["outcome"] == "succeeded"]
    excused = {record["number"] for record in records if record["outcome"] == "lost" and _process(record) in killed}
    return len(succeeded) > 1 or len(seen) != len(set(seen)) or len([n for n in seen if n not in excused]) > 1


def _process(record: Mapping[str, Any]) -> str:
    return process_of(str(record["processor"]))
