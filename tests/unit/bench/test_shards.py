"""The benchmark of several shards: whom it loads, what it refuses, and what its figures are of."""

from collections import Counter
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.shards.layout import Layout
from tests.bench.shards import SHARDS, Plan, Takeover, figures_of, ratios, tenants_of_all


def test_every_shard_has_as_many_tenants_in_turns() -> None:
    tenants = tenants_of_all(64)
    layout = Layout.even([str(index) for index in range(SHARDS)])
    assert Counter(tenants).most_common(1)[0][1] == 1
    assert [layout.index_of(tenant) for tenant in tenants] == list(range(SHARDS)) * (64 // SHARDS)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tenants": 6}, "--tenants: 6; expected a multiple of 4"),
        ({"fires_per_s": 39}, "--fires: 39 a second are"),
    ],
)
def test_a_plan_that_would_show_nothing_is_refused(given: dict[str, int], said: str) -> None:
    whole: dict[str, Any] = {"rates": [200], "seconds": 20, "tenants": 64, "fires_per_s": 100, "kills": 1, "slots": 32}
    with pytest.raises(InvalidInput, match=said):
        Plan(**{**whole, **given})


def test_costs_of_a_job_are_divided_and_nothing_else_is() -> None:
    one = {"jobs_per_s": 200, "cpu_ms_per_job": 4.0, "replica_cpu_ms_per_job": 2.0, "rabbitmq_cpu_ms_per_job": 0.0}
    several = {**one, "cpu_ms_per_job": 5.0, "replica_cpu_ms_per_job": 1.0}
    assert ratios(several, one) == {"cpu_ratio": 1.25, "replica_cpu_ratio": 0.5}


def test_figures_are_of_all_kills_together() -> None:
    first = Takeover([40, 60], [30, 70], [4] * 99 + [8], [5] * 98 + [16] * 2, unstarted=0, moved=0)
    second = Takeover([50, 140], [20, 90], [4] * 100, [5] * 97 + [16] * 3, unstarted=3, moved=1)
    figures = figures_of([first, second])
    assert (figures["kills"], figures["takeovers"]) == (2, 4)
    assert (figures["dispatch_p50_ms"], figures["dispatch_max_ms"]) == (50, 140)
    assert (figures["returned_p50_ms"], figures["returned_max_ms"]) == (30, 90)
    assert (figures["others_before_p99_ms"], figures["others_after_p99_ms"]) == (4, 16)
    assert (figures["others_p99_ratio"], figures["unstarted"], figures["others_moved"]) == (4.0, 3, 1)
