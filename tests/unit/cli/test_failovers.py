"""``hascheduler cluster failovers``, and the line that ``hascheduler cluster`` has of the last one."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hascheduler.model.failover import NO_BACKLOG, Backlog, Failover, FailoverEnd
from tests.factories import make_failover
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica, invoke


async def test_they_are_a_table_the_latest_first(replica: Replica, world: World) -> None:
    assert "No change of leadership has been reported" in (await replica.done("cluster", "failovers")).out
    await world.failovers.save(
        make_failover(7, backlog=NO_BACKLOG, first_decision_at_ms=None, ended=FailoverEnd.TERM_ENDED)
    )
    await world.failovers.save(make_failover(8, backlog=Backlog(3, 132, coalesced=5, missed=6, requeued=4)))
    lines = (await replica.done("cluster", "failovers", COLUMNS="200")).out.splitlines()
    rows = [" ".join(line.split()) for line in lines if "2030" in line]
    assert rows == [
        "8 2030-01-01T00:00:00.060Z r2 died 40 ms 80 ms 138 ms 3, ≤ 132 ms 5 6 caught_up",
        "7 2030-01-01T00:00:00.060Z r2 died 40 ms 80 ms – 0 0 0 term_ended",
    ]


async def test_where_there_are_several_shards_each_has_its_name_before_it(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [replace(make_failover(8), shard=shard) for shard in ("0001", "default")]

    async def newest(shard: str, limit: int) -> Sequence[Failover]:
        return both

    monkeypatch.setattr(world.failovers, "newest", newest)
    lines = (await replica.done("cluster", "failovers", COLUMNS="200")).out.splitlines()
    assert [line.split()[:2] for line in lines if "2030" in line] == [["0001", "8"], ["default", "8"]]


async def test_json_is_for_programs_and_the_limit_for_all(replica: Replica, world: World) -> None:
    for term in (1, 2, 3):
        await world.failovers.save(make_failover(term))
    items = (await replica.done("cluster", "failovers", "--json", "--limit", "2")).json["items"]
    assert isinstance(items, list)
    assert [(item["term"], item["gap_ms"]) for item in items] == [(3, 138), (2, 138)]


async def test_the_cluster_has_a_line_of_the_last_one(replica: Replica, world: World) -> None:
    assert "last failover" not in (await replica.done("cluster", COLUMNS="200")).out
    world.view.failover = make_failover(backlog=Backlog(3, 132, missed=2))
    expected = (
        "last failover   term 8 at 2030-01-01T00:00:00.060Z, died; detected 40 ms, deciding 80 ms, gap 138 ms;"
        " 3 fires late, at most 132 ms; 2 missed"
    )
    assert expected in (await replica.done("cluster", COLUMNS="200")).out
    world.view.failover = make_failover(backlog=NO_BACKLOG, last_sign_at_ms=None, last_decision_at_ms=None)
    assert "died; deciding 80 ms; no fire late\n" in (await replica.done("cluster", COLUMNS="200")).out


@pytest.mark.parametrize("options", [["--json"], ["--watch"], ["--url", "http://x"]])
def test_options_of_the_cluster_are_not_passed_over_in_silence(options: list[str]) -> None:
    ended = invoke("cluster", *options, "failovers")
    assert (ended.status, ended.err.startswith(f"hascheduler: {options[0]}: stands before failovers")) == (2, True)
