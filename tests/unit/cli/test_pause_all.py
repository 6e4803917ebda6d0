"""``hascheduler pause``, ``resume`` and ``hascheduler processor list | drain | undrain`` against the real API."""

from typing import Any

from tests.unit.cli.invoking import Replica, invoke


async def test_everything_is_paused_shown_and_resumed(replica: Replica) -> None:
    said = (await replica.done("pause", "--all", "--because", "the [database] moves")).out
    assert said == "everything is paused since 2030-01-01T00:00:00Z by anonymous: the [database] moves\n"
    assert said.strip() in (await replica.done("cluster", COLUMNS="120")).out
    assert (await replica.done("resume", "--all")).out == "nothing is paused\n"
    assert "paused since" not in (await replica.done("cluster", COLUMNS="120")).out
    only: Any = (await replica.done("pause", "--all", "--because", "x", "--schedules-only", "--json")).json
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
    answer: Any = (await replica.done("processor", "list", "--json")).json
    assert answer["items"][0]["drained"]["by"] == "anonymous"
    assert (await replica.done("processor", "undrain", "p-1")).out == "p-1 gets jobs\n"
    refused = await replica.run("processor", "drain", "nobody")
    assert (refused.status, refused.err) == (2, "hascheduler: no processor 'nobody'\n")


def test_the_command_that_runs_a_processor_takes_modules_as_before() -> None:
    assert "MODULE" in invoke("processor").err
    refused = invoke("processor", "--slots", "0", "processors.log")
    assert (refused.status, "HASCHEDULER_SLOTS" in refused.err) == (2, True)
    shown = invoke("processor", "--help").out
    assert "MODULE" in shown
    assert "drain " in shown
    assert "Usage: hascheduler processor drain [OPTIONS]" in invoke("processor", "drain", "--help").out
