"""``hascheduler cluster failovers``."""

from collections.abc import Sequence

import pytest

from hascheduler.model.failover import Failover
from tests.factories import make_failover
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica, invoke


async def test_they_are_a_table_the_latest_first_or_json(replica: Replica, world: World) -> None:
    assert "No change of leadership has been reported" in (await replica.done("cluster", "failovers")).out
    for failover in (make_failover(6), make_failover(7, gap_ms=None, first_decision_at_ms=None), make_failover(8)):
        await world.failovers.save(failover)
    lines = (await replica.done("cluster", "failovers", "--limit", "2", COLUMNS="200")).out.splitlines()
    assert [" ".join(line.split()) for line in lines if "2030" in line] == [
        "8 2030-01-01T00:00:00.140Z r2 died 120 ms 2030-01-01T00:00:00.150Z",
        "7 2030-01-01T00:00:00.140Z r2 died – –",
    ]
    items = (await replica.done("cluster", "failovers", "--json", "--limit", "2")).json["items"]
    assert isinstance(items, list)
    assert [(item["term"], item["gap_ms"]) for item in items] == [(8, 120), (7, None)]


async def test_where_there_are_several_shards_each_has_its_name_before_it(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [make_failover(8, shard=shard) for shard in ("0001", "default")]

    async def newest(shard: str, limit: int) -> Sequence[Failover]:
        return both

    monkeypatch.setattr(world.failovers, "newest", newest)
    lines = (await replica.done("cluster", "failovers", COLUMNS="200")).out.splitlines()
    assert [line.split()[:2] for line in lines if "2030" in line] == [["0001", "8"], ["default", "8"]]


@pytest.mark.parametrize("options", [["--json"], ["--watch"], ["--url", "http://x"]])
def test_options_of_the_cluster_are_not_passed_over_in_silence(options: list[str]) -> None:
    ended = invoke("cluster", *options, "failovers")
    assert (ended.status, ended.err.startswith(f"hascheduler: {options[0]}: stands before failovers")) == (2, True)
