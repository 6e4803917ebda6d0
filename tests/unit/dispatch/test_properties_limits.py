"""No limit is ever exceeded, whatever the policy and the load: counted again at each dispatch, from the outcome."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from hascheduler.model.policy import PRESETS
from hascheduler.model.processor import supports
from hascheduler.simulate.parsing import scenario_of
from hascheduler.simulate.run import RunOutcome, SimulatedAttempt, run
from hascheduler.simulate.scenario import ScenarioJob
from tests.tiers import in_tier

DEFINITIONS: dict[str, dict[str, Any]] = {
    "capped": {"max_concurrency": 2, "conflict_group": "g"},
    "low": {"tier": 2},
    "high": {"tier": 3, "conflict_group": "g"},
    "high-too": {"tier": 3, "conflict_group": "h", "conflict_scope": "tenant", "resources": {"cpu": 2}},
    "limited": {"rate_limit": {"count": 2, "per": 30}},
    "plain": {},
}
QUOTA, TOTAL = 3, 9
PER_MS, COUNT = 30_000, 2
_NEVER_MS = 10**9


def _outcome(preset: str, seed: int) -> RunOutcome:
    chance = Random(seed)
    return run(
        scenario_of(
            {
                "policy": preset,
                "max_concurrency": TOTAL,
                "definitions": DEFINITIONS,
                "tenants": {"small": {"max_running": QUOTA}},
                "processors": [
                    {"id": "p", "slots": 6, "resources": {"cpu": 5}, "leave_at": 150},
                    {"id": "q", "slots": 4, "types": ["capped", "high", "plain"], "drain_at": 200},
                    {"id": "r", "slots": 5, "resources": {"cpu": 3, "mem": 4}, "join_at": 60},
                ],
                "jobs": [
                    {
                        "id": f"j{n}", "definition": chance.choice(sorted(DEFINITIONS)),
                        "duration": chance.randint(1, 40), "target": chance.choice("abc"),
                        "tenant": chance.choice(("small", "large")), "fairness_key": chance.choice("kl"),
                        "lane": chance.choice("MN"), "priority": chance.randrange(11),
                        "mode": chance.choice(("queued", "on_demand")), "submit_at": chance.randrange(300),
                        **chance.choice(({}, {}, {"resources": {"cpu": 1, "mem": 1}}, {"resources": {"cpu": 3}})),
                    }
                    for n in range(200)
                ],
            }
        )
    )  # fmt: skip


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("seed", range(in_tier(check=2, test=5)))
def test_no_limit_is_exceeded_at_any_dispatch(preset: str, seed: int) -> None:
    outcome = _outcome(preset, seed)
    scenario = outcome.scenario
    jobs = {record.job.id: record.job for record in outcome.jobs}
    full: Counter[str] = Counter()
    for n, newest in enumerate(outcome.attempts):
        now = newest.started_at_ms
        [taker] = [each for each in scenario.processors if each.id == newest.processor]
        assert supports(taker.definitions, jobs[newest.job].definition)
        assert taker.join_at_ms <= now < min(taker.drain_at_ms or _NEVER_MS, taker.leave_at_ms or _NEVER_MS)
        held = [each for each in outcome.attempts[: n + 1] if each.ended_at_ms is None or each.ended_at_ms > now]
        assert newest in held
        running = [jobs[each.job] for each in held]
        full["total"] += _is_full(len(held), TOTAL)
        full["tenant"] += _is_full(sum(job.tenant == "small" for job in running), QUOTA)
        of_definition = Counter(job.definition for job in running)
        full["definition"] += _is_full(of_definition["capped"], 2)
        full["low"] += _is_full(of_definition["low"], 2)
        full["high"] += _is_full(of_definition["high"] + of_definition["high-too"], 3)
        locks = Counter((DEFINITIONS[job.definition].get("conflict_group"), job.target, _of(job)) for job in running)
        full["conflict"] += max([_is_full(count, 1) for (group, *_), count in locks.items() if group], default=False)
        for processor in scenario.processors:
            here = [jobs[each.job] for each in held if each.processor == processor.id]
            full["slots"] += _is_full(len(here), processor.slots)
            has, used = dict(processor.resources), sum((_needs(job) for job in here), Counter[str]())
            assert all(amount <= has.get(name, 0) for name, amount in used.items())
            full["resources"] += used["cpu"] == has.get("cpu", 0) > 0
    assert set(+full) == {"total", "tenant", "definition", "low", "high", "conflict", "slots", "resources"}, "all bite"
    _check_rate([each for each in outcome.attempts if jobs[each.job].definition == "limited"])


def _of(job: ScenarioJob) -> str | None:
    """Whose jobs its own excludes; None: everybody's."""
    return job.tenant if "conflict_scope" in DEFINITIONS[job.definition] else None


def _is_full(count: int, limit: int) -> bool:
    assert count <= limit
    return count == limit


def _needs(job: ScenarioJob) -> Counter[str]:
    if job.resources is not None:
        return Counter(dict(job.resources))
    return Counter(DEFINITIONS[job.definition].get("resources", {}))


def _check_rate(attempts: list[SimulatedAttempt]) -> None:
    """In a span no more than what a full bucket holds, and what comes in meanwhile."""
    assert len(attempts) > 2 * COUNT
    starts = [each.started_at_ms for each in attempts]
    for n, first in enumerate(starts):
        for more, last in enumerate(starts[n:], 1):
            assert more <= COUNT + (last - first) * COUNT // PER_MS
