"""The fast planner decides what the slow, obvious one decides, under every policy, whatever happens in between."""

from itertools import product

import pytest

from hascheduler.dispatch import timers
from hascheduler.dispatch.capacity import admission_limits, slot_pool
from hascheduler.dispatch.queue import class_queues, fifo_buckets, pending_queue
from hascheduler.dispatch.timers import Timers
from hascheduler.model.policy import PRESETS
from tests.tiers import in_tier
from tests.unit.dispatch.core_vs_oracle import KEYS, TENANTS, CoreVsOracle
from tests.unit.dispatch.core_vs_oracle_faults import CoreVsOracleFaults

RUNS = in_tier(check=1, test=20, long=40)
STEPS = 40


def check(seed: int, rivals: CoreVsOracle) -> None:
    for step in range(STEPS):
        decided, expected = rivals.step()
        assert decided == expected, f"Rivals({seed}), step {step}: {rivals.policy}"
        for tenant, key in product(TENANTS, (None, *KEYS)):
            accounts = rivals.core.state.accounts
            cost_ms = accounts.tenant_cost(tenant) if key is None else accounts.cost(tenant, key)
            assert cost_ms == rivals.oracle.costs.get((tenant, key), 0), f"Rivals({seed}), {step}, {tenant}, {key}"
        for pair, cost_ms in rivals.oracle.learned.items():
            assert rivals.core.state.accounts.learned(*pair) == cost_ms, f"Rivals({seed}), {step}"


@pytest.mark.parametrize("part", range(25))
def test_any_policy_decides_as_the_oracle_does(part: int) -> None:
    for seed in range(part * RUNS, (part + 1) * RUNS):
        check(seed, CoreVsOracle(seed))


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_decides_as_the_oracle_does(preset: str) -> None:
    for seed in range(10_000, 10_000 + 3 * RUNS):
        check(seed, CoreVsOracle(seed, PRESETS[preset]))


@pytest.mark.parametrize("part", range(5))
def test_an_explanation_names_the_rules_that_hold_a_job_back_and_no_others(part: int) -> None:
    for seed in range(part * RUNS, (part + 1) * RUNS):
        rivals = CoreVsOracle(seed)
        for step in range(STEPS):
            rivals.step()
            for job in rivals.waiting(4):
                explanation = rivals.core.explain(job.id, rivals.now)
                assert explanation is not None
                named = {_named(block.rule.value) for block in explanation.blocks}
                assert named == rivals.oracle.blocks(job), f"Rivals({seed}), step {step}, {job.id}"


def _named(rule: str) -> str:
    return "slot" if rule in ("no_slot", "unschedulable") else rule


@pytest.mark.parametrize("part", range(8))
def test_losses_and_takeovers_change_no_decision(part: int) -> None:
    for seed in range(part * RUNS, (part + 1) * RUNS):
        check(seed, CoreVsOracleFaults(seed))


@pytest.mark.parametrize("part", range(4))
def test_nor_does_forgetting_what_is_empty_as_soon_as_can_be(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there are very many, and most have gone."""
    for room in (fifo_buckets, class_queues, class_queues):
        monkeypatch.setattr(room, "SWEEP_MIN", 2)
    for owner, limit in (
        (pending_queue, "_CLASS_QUEUES_MAX"), (pending_queue, "_CLASSES_MAX"),
        (admission_limits, "_PROFILES_KEPT_MAX"), (class_queues, "_FOUND_MAX"),
        (slot_pool, "_SWEEP_MIN"), (timers, "_SWEEP_MIN"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, limit, 2)
    for seed in range(20_000 + part * RUNS, 20_000 + (part + 1) * RUNS):
        check(seed, CoreVsOracleFaults(seed))


@pytest.mark.parametrize("part", range(5))
def test_unschedulable_jobs_are_those_that_the_oracle_finds_no_processor_for(part: int) -> None:
    for seed in range(30_000 + part * 20, 30_000 + part * 20 + in_tier(check=4, test=20)):
        rivals = CoreVsOracle(seed)
        for step in range(40):
            rivals.step()
            oracle = rivals.oracle
            due = [job for job in oracle.waiting.values() if (job.not_before_ms or 0) <= rivals.now]
            expected = sorted(job.id for job in due if not oracle.could_run(job))
            assert rivals.core.state.explainer.unschedulable() == expected, f"Rivals({seed}), step {step}"
            # Those that a processor takes, though it lacks a resource for them, are runnable, and unschedulable too.
            assert len(due) - len(expected) <= rivals.core.runnable <= len(due), f"Rivals({seed}), step {step}"


def test_names_that_move_again_and_again_leave_nothing_behind() -> None:
    timers = Timers()
    for at_ms in range(100_000):
        timers.set("a", at_ms)
        timers.set("b", -at_ms)
    assert len(timers._soon) + timers._binned < 2_000
    assert list(timers.take_due(0, 10)) == [("b", -99_999)]
    assert timers.next_at() == 99_999
