"""Whatever befalls the cluster, leader and standby decide, charge and explain as the oracle does."""

import pytest

from hascheduler.dispatch import cells, gates, groups, line, nodes, parking, profiles, timers
from tests.unit.dispatch.core_vs_oracle_faults import TroubledRivals
from tests.unit.dispatch.test_against_oracle import check

RUNS = 40


@pytest.mark.parametrize("part", range(8))
def test_losses_and_takeovers_change_no_decision(part: int) -> None:
    for seed in range(part * RUNS, (part + 1) * RUNS):
        check(seed, TroubledRivals(seed))


@pytest.mark.parametrize("part", range(4))
def test_nor_does_forgetting_what_is_empty_as_soon_as_can_be(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there are very many, and most have gone."""
    for room in (cells, groups, parking):
        monkeypatch.setattr(room, "SWEEP_MIN", 2)
    for owner, limit in (
        (line, "_GROUPS_MAX"), (line, "_KINDS_MAX"), (gates, "_PROFILES_KEPT_MAX"), (nodes, "_FOUND_MAX"),
        (profiles, "_SWEEP_MIN"), (timers, "_SWEEP_MIN"),
    ):  # fmt: skip
        monkeypatch.setattr(owner, limit, 2)
    for seed in range(20_000 + part * RUNS, 20_000 + (part + 1) * RUNS):
        check(seed, TroubledRivals(seed))
