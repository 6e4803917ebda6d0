"""The demo's verdict sees what is missed, doubled and unexpected; and excuses only what a kill excuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from hascheduler.demo.evidence import Effect, Effects, Expectation, evaluate
from hascheduler.errors import WorldError
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.trigger import Interval, Once, Trigger

UNTIL_MS = 3_500
TICK = Expectation("tick", Trigger(Interval(1_000, WallMs(0))), WallMs(500), logs=True)
ONCE = Expectation("once", Trigger(Once(WallMs(2_500))), WallMs(500), logs=True)
JOBS = ["fire:tick:1000", "fire:tick:2000", "fire:tick:3000", "fire:once:2500"]


def _effect(job_id: str, attempt: int = 1) -> Effect:
    nominal_ms = int(job_id.rpartition(":")[2])
    return Effect(job_id, attempt, nominal_ms, nominal_ms + 5)


def _job(*outcomes: str, processor: str = "p.1") -> dict[str, Any]:
    records = [
        {"number": number, "outcome": outcome, "processor": processor} for number, outcome in enumerate(outcomes, 1)
    ]
    return {"state": outcomes[-1], "attempt": len(outcomes), "attempts": records}


def _verdict(effects: list[Effect], cut_from_ms: int | None = None, **jobs: dict[str, Any]) -> dict[str, list[str]]:
    stored = {job: _job("succeeded") for job in JOBS} | {JOBS[0]: jobs.get("first", _job("succeeded"))}
    verdict = evaluate(
        [TICK, ONCE],
        effects,
        stored,
        until_ms=UNTIL_MS,
        killed={"p.1": cut_from_ms},
    )
    assert verdict.expected == len(JOBS)
    found = {"missed": verdict.missed, "doubled": verdict.doubled, "unexpected": verdict.unexpected}
    assert verdict.faulty == any(found.values())
    found["pending"] = verdict.pending
    assert verdict.fired == len(JOBS) - len(verdict.missed) - len(verdict.pending)
    found["unseen"] = verdict.unseen
    return {name: jobs for name, jobs in found.items() if jobs}


ALL = [_effect(job) for job in JOBS]


STATES_TO_RUN = ("pending", "dispatched", "running")
RAN_TWICE = {**_job("lost", processor="p.1"), "state": "pending"}
# effects, the first job, what is found
VERDICTS: dict[str, tuple[list[Effect], dict[str, Any], dict[str, list[str]]]] = {
    "one effect each": (ALL, _job("succeeded"), {}),
    "no effect": (ALL[1:], _job("succeeded"), {"missed": JOBS[:1]}),
    "its handler ran and it failed": (ALL, _job("failed"), {"missed": JOBS[:1]}),
    **{
        f"still {state}": (ALL[1:], {"state": state, "attempt": 0, "attempts": []}, {"pending": JOBS[:1]})
        for state in STATES_TO_RUN
    },
    "ran twice and is to run again": ([*ALL, ALL[0]], RAN_TWICE, {"doubled": JOBS[:1], "pending": JOBS[:1]}),
    "the same attempt twice": ([*ALL, ALL[0]], _job("succeeded"), {"doubled": JOBS[:1]}),
    **{
        f"{job} is no nominal time": ([*ALL, _effect(job)], _job("succeeded"), {"unexpected": [job]})
        for job in ("fire:tick:1500", "fire:once:2000", "fire:other:1000", "fire:tick:0")
    },
    "due after the end": ([*ALL, _effect("fire:tick:4000")], _job("succeeded"), {}),
}


@pytest.mark.parametrize(("effects", "first", "found"), VERDICTS.values(), ids=VERDICTS)
def test_each_nominal_time_has_one_effect_or_is_told(
    effects: list[Effect], first: dict[str, Any], found: dict[str, list[str]]
) -> None:
    assert _verdict(effects, first=first) == found


@pytest.mark.parametrize(
    ("first", "doubled"),
    [
        (_job("lost", "succeeded", processor="p.1"), False),
        (_job("lost", "succeeded", processor="p.2"), True),
        (_job("given_back", "succeeded", processor="p.1"), True),
        (_job("succeeded", "succeeded", processor="p.1"), True),
    ],
)
def test_two_attempts_are_excused_only_if_a_killed_processor_took_the_first_along(
    first: dict[str, Any], doubled: bool
) -> None:
    assert _verdict([*ALL, _effect(JOBS[0], attempt=2)], first=first) == ({"doubled": [JOBS[0]]} if doubled else {})


@pytest.mark.parametrize(
    ("first", "from_ms", "found"),
    [
        (_job("succeeded", processor="p.1"), 1_000, {"unseen": [JOBS[0]]}),
        (_job("lost", "succeeded", processor="p.1"), 1_000, {"unseen": [JOBS[0]]}),
        (_job("succeeded", processor="p.1"), 1_001, {"missed": [JOBS[0]]}),
        (_job("succeeded", processor="p.2"), 1_000, {"missed": [JOBS[0]]}),
        (_job("failed", processor="p.1"), 1_000, {"missed": [JOBS[0]]}),
    ],
)
def test_an_effect_may_be_unseen_only_among_the_last_of_a_processor_that_took_its_output_along(
    first: dict[str, Any], from_ms: int, found: dict[str, list[str]]
) -> None:
    assert _verdict(ALL[1:], from_ms, first=first) == found


def test_an_output_is_read_as_it_grows_whole_lines_only(tmp_path: Path) -> None:
    output, effects = tmp_path / "log", Effects()
    line = json.dumps({"effect": "log", "job": "fire:tick:1000", "attempt": 1, "nominal_ms": 1_000, "at_ms": 1_005})
    assert effects.read([output]) == []
    output.write_text(f'{{"event": "registered"}}\n{line}\n{line[:20]}')
    assert effects.read([output]) == [Effect("fire:tick:1000", 1, 1_000, 1_005)]
    assert effects.read([output]) == []
    with output.open("a") as file:
        file.write(line[20:] + "\n")
    assert [effect.lag_ms for effect in effects.read([output])] == [5]
    assert len(effects.all) == 2


@pytest.mark.parametrize("line", ['{"effect": "log"}', '{"effect": "log", "job": }'])
def test_a_line_that_is_half_an_effect_is_an_error(tmp_path: Path, line: str) -> None:
    output = tmp_path / "log"
    output.write_text(line + "\n")
    with pytest.raises(WorldError, match="contains a line that is not an effect"):
        Effects().read([output])
