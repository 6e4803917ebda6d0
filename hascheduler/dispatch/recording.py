"""A recording: the inputs and decisions of a leader, step by step, as lines of JSON.

::

    {"hascheduler_recording": 1, "at_ms": …, "replica": …, "term": …, "config": {…}}
    {"now": …, "inputs": […]}                     what the leader knew when the recording began, in several lines
    {"now": …, "inputs": […], "decisions": […]}   one line per step
    {"end": "…"}                                  why it ended; missing if the recording was cut off

Inputs are lists, their type first; nouns have their stored form, without payloads. The types are strings of their own,
so renaming a class does not change what is recorded.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

from hascheduler.dispatch.accounts import decode_accounts, encode_accounts
from hascheduler.dispatch.config import DispatchConfig, PolicyConfig
from hascheduler.dispatch.decisions import (
    EXTRA_FIELDS,
    Decision,
    Settlement,
    decode_decisions,
    encode_decisions,
    encode_extras,
)
from hascheduler.dispatch.inputs import (
    AccountsRestored,
    Input,
    ProcessorLost,
    ProcessorRests,
    Resynced,
    Settled,
    TermBegan,
    TransportSeen,
    TrustLost,
)
from hascheduler.errors import InvalidInput
from hascheduler.mirror import changes as seen
from hascheduler.mirror.tables import TABLES
from hascheduler.model.collection import Collection
from hascheduler.model.job import JobState
from hascheduler.model.policy import IdleKeyStart, criteria
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import WallMs

FORMAT = 1
MARK = "hascheduler_recording"
_SEEN: dict[str, type[Any]] = {
    "jobs": seen.JobSeen,
    "schedules": seen.ScheduleSeen,
    "processors": seen.ProcessorSeen,
}
_RULES = frozenset({"definitions", "lanes", "calendars", "tenants", "pauses", "holds"})
_GONE = {f"{collection.removesuffix('s')}_gone": collection for collection in _RULES}


@dataclass(frozen=True, slots=True)
class RecordingHeading:
    """The replica and term of a recording, and the limits and policy by which it decided."""

    at_ms: WallMs
    replica: str
    term: int
    config: DispatchConfig


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step; ``decisions`` is None if the inputs are what the leader knew at the beginning."""

    now: WallMs
    inputs: tuple[Input, ...]
    decisions: tuple[Decision, ...] | None


@dataclass(frozen=True, slots=True)
class RecordingEnd:
    reason: str


# Writing


def heading_line(heading: RecordingHeading) -> dict[str, Any]:
    return {
        MARK: FORMAT,
        "at_ms": heading.at_ms,
        "replica": heading.replica,
        "term": heading.term,
        "config": asdict(heading.config),
    }


def step_line(step: RecordedStep) -> dict[str, Any]:
    line: dict[str, Any] = {"now": step.now, "inputs": [_encode(each) for each in step.inputs]}
    return line if step.decisions is None else line | {"decisions": encode_decisions(step.decisions)}


def _encode(each: Input) -> list[Any]:
    match each:
        case seen.JobSeen(job):
            return _noun_row(Collection.JOBS, job.id, job)
        case seen.ScheduleSeen(schedule):
            return _noun_row(Collection.SCHEDULES, schedule.name, schedule)
        case seen.ProcessorSeen(processor):
            return _noun_row(Collection.PROCESSORS, processor.id, processor)
        case seen.NounSeen(collection, id, None):
            return [f"{collection.removesuffix('s')}_gone", id]
        case seen.NounSeen(collection, id, noun):
            return _noun_row(collection, id, noun)
        case seen.ScheduleGone(name):
            return ["schedule_gone", name]
        case seen.ProcessorGone(id):
            return ["processor_gone", id]
        case seen.JobGone(id, state, finished_at_ms):
            return ["job_gone", id, state, finished_at_ms]
        case seen.BatchSeen(batch, is_live, failed):
            return ["batch", batch, is_live, failed]
        case ProcessorLost(id, beat):
            return ["processor_lost", id, beat]
        case ProcessorRests(id, rest):
            return ["processor_rests", id, *astuple(rest)]
        case TransportSeen(accepting):
            return ["transport", accepting]
        case TermBegan(term, reapplied):
            return ["term_began", term, encode_decisions(reapplied), *_beside(reapplied)]
        case TrustLost():
            return ["trust_lost"]
        case Resynced():
            return ["resynced"]
        case AccountsRestored(accounts):
            return ["accounts", encode_accounts(accounts)]
        case Settled(decision, settlement):
            one = (decision,)
            return ["settled", encode_decisions(one), settlement.value, *_beside(one)]


def _noun_row(collection: Collection, id: str, noun: Any) -> list[Any]:
    fields = {**TABLES[collection].encode(noun)}
    fields.pop("_id", None)
    return [collection.value, id, fields]


def _beside(decisions: tuple[Decision, ...]) -> list[Any]:
    """Return the values besides the rows of ``decisions``, in the order in which they are read."""
    extras = encode_extras(decisions)
    through = max((EXTRA_FIELDS.index(name) + 1 for name in extras), default=0)
    return [extras.get(name) for name in EXTRA_FIELDS[:through]]


# Reading


def is_recording(text: str) -> bool:
    """Return True if ``text`` is the beginning of a recording, and not of a scenario."""
    return text.lstrip()[:64].startswith(f'{{"{MARK}"')


def read_recording(lines: Iterable[str]) -> tuple[RecordingHeading, Iterator[RecordedStep | RecordingEnd]]:
    """Return the heading and an iterator of steps; a line that can't be read raises `InvalidInput` with its number."""
    numbered = enumerate(lines, start=1)
    number, first = next(numbered, (1, ""))
    return _heading(_object(number, first)), _steps(numbered)


def _steps(numbered: Iterable[tuple[int, str]]) -> Iterator[RecordedStep | RecordingEnd]:
    for number, text in numbered:
        if not text.strip():
            continue
        line = _object(number, text)
        if "end" in line:
            yield RecordingEnd(str(line["end"]))
            return
        try:
            yield RecordedStep(
                now=WallMs(line["now"]),
                inputs=tuple(_decode(row) for row in line["inputs"]),
                decisions=decode_decisions(line["decisions"]) if "decisions" in line else None,
            )
        except (InvalidInput, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InvalidInput(("line", number), f"unreadable: {str(error)[:200]}", "a recorded step") from error


def _object(number: int, text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(("line", number), f"not JSON: {str(error)[:100]}", "one JSON object per line") from None
    if not isinstance(line, dict):
        raise InvalidInput(("line", number), f"a {type(line).__name__}", "an object")
    return line


def _heading(line: Mapping[str, Any]) -> RecordingHeading:
    if line.get(MARK) != FORMAT:
        raise InvalidInput(("line", 1), f"format {str(line.get(MARK))[:64]!r} is unknown", f"format {FORMAT}")
    try:
        config = dict(line["config"])
        policy = dict(config.pop("policy"))
        policy["criteria"] = criteria(policy["criteria"])
        policy["idle_key_start"] = IdleKeyStart(policy["idle_key_start"])
        config["part"] = tuple(config.get("part", (0, 1)))
        read = DispatchConfig(policy=PolicyConfig(**policy), **config)
        return RecordingHeading(WallMs(line["at_ms"]), str(line["replica"]), int(line["term"]), read)
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise InvalidInput(("line", 1), f"unreadable: {str(error)[:200]}", "the header of a recording") from error


def _decode(row: list[Any]) -> Any:
    kind = row[0]
    if kind in _SEEN:
        return _SEEN[kind](TABLES[Collection(kind)].decode(row[1], row[2]))
    if kind in _RULES:
        return seen.NounSeen(Collection(kind), str(row[1]), TABLES[Collection(kind)].decode(row[1], row[2]))
    if kind in _GONE:
        return seen.NounSeen(Collection(_GONE[kind]), str(row[1]))
    match row:
        case ["schedule_gone", name]:
            return seen.ScheduleGone(str(name))
        case ["processor_gone", id]:
            return seen.ProcessorGone(str(id))
        case ["job_gone", id, state, finished_at_ms]:
            return seen.JobGone(id, None if state is None else JobState(state), finished_at_ms)
        case ["batch", batch, is_live, failed]:
            found = None if failed is None else (str(failed[0]), JobState(failed[1]))
            return seen.BatchSeen(str(batch), bool(is_live), found)
        case ["processor_lost", id, beat]:
            return ProcessorLost(id, beat)
        case ["processor_rests", id, missed, count, until_ms, trial]:
            return ProcessorRests(id, Rest(missed, count, WallMs(until_ms), trial))
        case ["transport", accepting]:
            return TransportSeen(bool(accepting))
        case ["term_began", term, rows, *extras]:
            return TermBegan(term, decode_decisions(rows, *extras))
        case ["trust_lost"]:
            return TrustLost()
        case ["resynced"]:
            return Resynced()
        case ["accounts", fields]:
            return AccountsRestored(decode_accounts(fields))
        case ["settled", rows, settlement, *extras]:
            [decision] = decode_decisions(rows, *extras)
            return Settled(decision, Settlement(settlement))
        case _:
            raise InvalidInput(("inputs",), f"{str(kind)[:64]!r} is unknown")
