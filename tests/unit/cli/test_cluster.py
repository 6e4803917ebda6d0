"""``hascheduler cluster`` against the real API with a small cluster behind it."""

from typing import Any

from hascheduler.model.processor import Rest
from tests.factories import NOW
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica, invoke


async def test_the_tables_show_who_leads_who_works_and_what_is_wrong(replica: Replica) -> None:
    shown = (await replica.done("cluster", COLUMNS="100")).out
    for text in ("leader replica-1 ", "term 7", "2/8", "pending 1", "state: missing"):
        assert text in shown
    for text in ("broken: overdue 2", "its mirror differs from replica-2"):
        assert text in shown


async def test_names_are_what_kubectl_takes_and_starts_stand_beside_them(replica: Replica) -> None:
    """A pod is called by the name; what comes behind the last point is new with each start of its container."""
    shown = (await replica.done("cluster", COLUMNS="120")).out
    assert not {"replica-1.aa", "replica-2.bb", "p-1.bb"} & set(shown.replace("│", " ").split())
    rows = [line.replace("│", " ").split() for line in shown.splitlines()]
    assert ["p-1", "bb"] in [row[:2] for row in rows]
    assert ["replica-1", "aa"] in [row[:2] for row in rows]


async def test_all_columns_are_shown_where_they_are_asked_for(replica: Replica) -> None:
    assert "--wide shows all" in (await replica.done("cluster", COLUMNS="60")).out
    shown = (await replica.done("cluster", "--wide", COLUMNS="60")).out
    assert "--wide" not in shown
    assert {"digest", "parked", "resources"} <= set(shown.split())


async def test_a_killed_replica_is_shown_as_silent(replica: Replica, world: World) -> None:
    assert "silent" not in (await replica.done("cluster", COLUMNS="100")).out
    world.view.silent = ["replica-1.aa"]
    assert "silent" in (await replica.done("cluster", COLUMNS="100")).out


async def test_a_processor_that_gets_no_jobs_is_shown_as_what_it_is(replica: Replica, world: World) -> None:
    world.view.rests = {"p-1.bb": Rest(3, 1, NOW)}
    for command in ("cluster", "processor list"):
        assert "resting" in (await replica.done(*command.split(), COLUMNS="140")).out
    world.view.consuming = False
    for command in ("cluster", "processor list"):
        assert "not consuming" in (await replica.done(*command.split(), COLUMNS="140")).out


async def test_json_is_for_programs(replica: Replica) -> None:
    answer: Any = (await replica.done("cluster", "--json")).json
    assert answer["leader"]["term"] == 7
    assert answer["processors"][0]["name"] == "p-1"


async def test_a_server_that_is_no_replica_is_one_line(replica: Replica) -> None:
    answer = await replica.run("cluster", HASCHEDULER_URL=f"{replica.url}/elsewhere")
    assert answer.status == 1
    assert (answer.err.count("\n"), "404" in answer.err) == (1, True)


def test_what_is_to_be_watched_is_not_for_programs() -> None:
    for command in (["cluster"], ["schedule", "list"], ["schedule", "timeline"], ["schedule", "verdicts", "x"]):
        ended = invoke(*command, "--json", "--watch")
        assert (ended.status, ended.err.startswith("hascheduler: --watch: ")) == (2, True)
