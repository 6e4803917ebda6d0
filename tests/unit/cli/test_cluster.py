"""``hascheduler cluster``, ``pause``, ``resume`` and ``processor list | drain | undrain`` against the real API."""

from collections.abc import Sequence

import pytest

from hascheduler.model.processor import Rest
from hascheduler.schema.failover import Failover
from tests.factories import NOW, make_failover
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica, invoke


async def test_the_tables_show_who_leads_who_works_and_what_is_wrong(replica: Replica, world: World) -> None:
    """A pod is called by the name; what comes behind the last point is new with each start of its container."""
    shown = (await replica.done("cluster", COLUMNS="120")).out
    for text in ("leader replica-1 ", "term 7", "2/8", "pending 1", "state: missing", "broken: overdue 2",
                 "its mirror differs from replica-2", "cpu=8"):  # fmt: skip
        assert text in shown
    assert not {"replica-1.aa", "replica-2.bb", "p-1.bb"} & set(shown.replace("│", " ").split())
    rows = [line.replace("│", " ").split()[:2] for line in shown.splitlines()]
    assert (["p-1", "bb"] in rows, ["replica-1", "aa"] in rows, "silent" in shown) == (True, True, False)
    world.view.silent = ["replica-1.aa"]
    assert "silent" in (await replica.done("cluster", COLUMNS="100")).out
    answer = await replica.json("cluster")
    assert (answer["leader"]["term"], answer["processors"][0]["name"]) == (7, "p-1")


async def test_all_columns_are_shown_where_they_are_asked_for(replica: Replica) -> None:
    assert "--wide shows all" in (await replica.done("cluster", COLUMNS="60")).out
    shown = (await replica.done("cluster", "--wide", COLUMNS="60")).out
    assert "--wide" not in shown
    assert {"digest", "parked", "resources"} <= set(shown.split())


async def test_a_processor_that_gets_no_jobs_is_shown_as_what_it_is(replica: Replica, world: World) -> None:
    world.view.rests = {"p-1.bb": Rest(3, 1, NOW)}
    for state in ("resting", "not consuming"):
        for command in ("cluster", "processor list"):
            assert state in (await replica.done(*command.split(), COLUMNS="140")).out
        world.view.consuming = False


async def test_a_server_that_is_no_replica_is_one_line(replica: Replica) -> None:
    answer = await replica.run("cluster", HASCHEDULER_URL=f"{replica.url}/elsewhere")
    assert answer.status == 1
    assert (answer.err.count("\n"), "404" in answer.err) == (1, True)


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
    both = [make_failover(8, shard=name) for name in ("0001", "default")]

    async def newest(shard: str, limit: int) -> Sequence[Failover]:
        return both

    monkeypatch.setattr(world.failovers, "newest", newest)
    lines = (await replica.done("cluster", "failovers", COLUMNS="200")).out.splitlines()
    assert [line.split()[:2] for line in lines if "2030" in line] == [["0001", "8"], ["default", "8"]]


def test_options_of_the_cluster_are_not_passed_over_in_silence() -> None:
    for options in (["--json"], ["--watch"], ["--url", "http://x"]):
        ended = invoke("cluster", *options, "failovers")
        assert (ended.status, "failovers" in ended.err) == (2, True)


async def test_everything_is_paused_shown_and_resumed(replica: Replica) -> None:
    said = (await replica.done("pause", "--all", "--because", "the [database] moves")).out
    assert said == "everything is paused since 2030-01-01T00:00:00Z by anonymous: the [database] moves\n"
    assert said.strip() in (await replica.done("cluster", COLUMNS="120")).out
    assert (await replica.done("resume", "--all")).out == "nothing is paused\n"
    assert "paused since" not in (await replica.done("cluster", COLUMNS="120")).out
    only = await replica.json("pause", "--all", "--because", "x", "--schedules-only")
    assert only["paused"]["schedules_only"] is True
    assert "all schedules are paused since" in (await replica.done("cluster", COLUMNS="120")).out


async def test_a_processor_is_drained_listed_and_undrained(replica: Replica) -> None:
    assert "live" in (await replica.done("processor", "list", COLUMNS="140")).out
    said = (await replica.done("processor", "drain", "p-1", "--because", "its node goes")).out
    assert said == "p-1 is drained since 2030-01-01T00:00:00Z by anonymous: its node goes\n"
    listed = (await replica.done("processor", "list", COLUMNS="140")).out
    for text in ("p-1", "2/8", "draining", "its node goes"):
        assert text in listed
    assert "draining" in (await replica.done("cluster", COLUMNS="140")).out
    answer = await replica.json("processor", "list")
    assert answer["items"][0]["drained"]["by"] == "anonymous"
    assert (await replica.done("processor", "undrain", "p-1")).out == "p-1 gets jobs\n"


def test_the_command_that_runs_a_processor_takes_modules_as_before() -> None:
    refused = invoke("processor", "--slots", "0", "processors.log")
    assert (refused.status, "HASCHEDULER_SLOTS" in refused.err) == (2, True)
    shown = invoke("processor", "--help").out
    assert ("MODULE" in shown, "drain " in shown) == (True, True)
    assert "Usage: hascheduler processor drain [OPTIONS]" in invoke("processor", "drain", "--help").out
