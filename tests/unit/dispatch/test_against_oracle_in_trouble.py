"""Whatever befalls the cluster, leader and standby decide, charge and explain as the oracle does."""

import pytest

from hascheduler.dispatch import timers
from hascheduler.dispatch.capacity import admission_limits, slot_pool
from hascheduler.dispatch.queue import class_queues, fifo_buckets, pending_queue
from tests.tiers import in_tier
from tests.unit.dispatch.core_vs_oracle_faults import CoreVsOracleFaults
from tests.unit.dispatch.test_against_oracle import check

RUNS = in_tier(check=1, test=40)


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
