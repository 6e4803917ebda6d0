"""``hascheduler operation``: one action on all that match, counted, agreed to, followed and stopped."""

from typing import Any

import pytest

from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica


async def jobs(replica: Replica, count: int = 3) -> None:
    for number in range(count):
        await replica.done("job", "submit", "log", "--label", f"n={number}")


@pytest.mark.usefixtures("runner")
async def test_what_matches_is_counted_and_then_changed(replica: Replica, world: World) -> None:
    await jobs(replica)
    asked = ("operation", "start", "cancel-jobs", "--definition", "log", "--because", "wrong images")
    assert (await replica.done(*asked, "--dry-run")).out == "3 jobs to cancel\n"
    unasked = await replica.run(*asked)
    assert (unasked.status, "Cancel 3 jobs?" in unasked.err) == (2, True)
    ended: Any = (await replica.done(*asked, "--yes", "--json")).json
    assert (ended["state"], ended["changed"], ended["reason"]) == ("done", 3, "wrong images")
    assert {job["state"] for job in world.everything()["jobs"]} == {"cancelled"}
    assert (await replica.done(*asked, "--yes")).out == "0 jobs to cancel\n"
    listed = (await replica.done("operation", "list", COLUMNS="160")).out
    assert "cancel_jobs" in listed
    assert "wrong images" in listed


@pytest.mark.usefixtures("runner")
async def test_schedules_are_paused_by_a_part_of_their_names(replica: Replica, world: World) -> None:
    for name in ("nightly-a", "nightly-b", "hourly"):
        await replica.done("schedule", "add", name, "--every", "1h", "--definition", "log")
    shown = (await replica.done("operation", "start", "pause-schedules", "--text", "nightly", "--yes")).out
    assert "pause_schedules: done, 2 of 2 changed" in shown
    paused = {one["_id"] for one in world.everything()["schedules"] if one["paused_at_ms"] is not None}
    assert paused == {"nightly-a", "nightly-b"}
    assert (
        "1 schedule to pause"
        in (await replica.done("operation", "start", "pause-schedules", "--state", "active", "--dry-run")).out
    )


async def test_jobs_are_chosen_by_all_that_their_list_takes(replica: Replica, world: World) -> None:
    await jobs(replica)
    world.view.never_to_run = {"job:0002"}
    for options, count in (
        (("--id", "job:000"), 3), (("--id", "fire:"), 0), (("--unschedulable",), 1),
        (("--since", "2030-01-01T00:00:00Z"), 3), (("--until", "2030-01-01T00:00:00Z"), 0),
        (("--since", "1h", "--id", "job:0003"), 1),
    ):  # fmt: skip
        told = (await replica.done("operation", "start", "cancel-jobs", *options, "--dry-run")).out
        assert told == f"{count} job{'' if count == 1 else 's'} to cancel\n", options
    told = (await replica.done("operation", "start", "pause-schedules", "--verdict", "missed", "--dry-run")).out
    assert told == "0 schedules to pause\n"


async def test_one_that_is_not_followed_is_shown_and_stopped(replica: Replica) -> None:
    await jobs(replica, 1)
    arguments = ("operation", "start", "reprioritize-jobs", "--priority", "9", "--definition", "log", "--yes")
    started: Any = (await replica.done(*arguments, "--detach", "--json")).json
    assert (started["state"], started["priority"]) == ("running", 9)
    assert "reprioritize_jobs: running, 0 of 1 changed" in (await replica.done("operation", "get", started["id"])).out
    assert (await replica.done("operation", "stop", started["id"])).out == "it stops after the slice under way\n"
    assert (await replica.run("operation", "get", "operation:none")).status == 2


async def test_there_may_be_none(replica: Replica) -> None:
    assert "There are no operations" in (await replica.done("operation", "list")).out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["cancel-jobs"], "filter"),
        (["cancel-jobs", "--text", "a"], "filter.text"),
        (["pause-schedules", "--definition", "log"], "filter.definition"),
        (["reprioritize-jobs", "--definition", "log"], "priority"),
        (["cancel-jobs", "--state", "done"], "filter.state"),
        (["cancel-jobs", "--since", "soon"], "--since"),
        (["cancel-jobs", "--verdict", "missed"], "filter.verdict"),
        (["pause-schedules", "--id", "fire:"], "filter.id"),
    ],
)
async def test_what_makes_no_sense_is_refused(replica: Replica, arguments: list[str], told: str) -> None:
    ended = await replica.run("operation", "start", *arguments, "--yes")
    assert (ended.status, told in ended.err) == (2, True), ended
