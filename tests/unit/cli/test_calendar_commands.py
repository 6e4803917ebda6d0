"""``hascheduler calendar …`` and schedules on calendars, against the real API."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

MANIFESTS = """
kind: Schedule
name: closing
trigger: {type: cron, expression: 0 18 * * *, timezone: Europe/Berlin, calendars: {only: [business-days], except: []}}
job: {definition: log}
---
kind: Calendar
name: business-days
weekdays: [mon-fri]
exclude: [12-24, 2030-12-31]
"""


async def test_a_calendar_is_made_shown_listed_edited_and_deleted(replica: Replica) -> None:
    assert "There are no calendars" in (await replica.done("calendar", "list")).out
    made = await replica.done("calendar", "put", "office", "--weekdays", "mon-fri", "--exclude", "--12-25,2030-12-24")
    assert "- '2030-12-24'\n- --12-25\n" in made.out
    assert "- '2030-12-24'\n- --12-25\n" in (await replica.done("calendar", "get", "office")).out
    assert "mon, tue, wed, thu, fri" in (await replica.done("calendar", "list", COLUMNS="140")).out
    edited: Any = (await replica.done("calendar", "edit", "office", "--exclude", "none", "--json")).json
    assert (edited["exclude"], edited["weekdays"][0]) == ([], "mon")
    assert (await replica.done("calendar", "delete", "office", "--yes")).out == "deleted office\n"


async def test_a_schedule_is_put_on_calendars_and_taken_off(replica: Replica, world: World) -> None:
    await replica.done("calendar", "put", "office", "--weekdays", "mon-fri")
    add = ("schedule", "add", "s", "--cron", "0 9 * * *", "--definition", "log")
    refused = await replica.run(*add, "--only-on", "ofice")
    assert (refused.status, "expected office" in refused.err) == (2, True)
    await replica.done(*add, "--only-on", "office", "--days-of", "europe/berlin")
    stored = world.stored(Collection.SCHEDULES, "s")["trigger"]
    assert (stored["type"], stored["only"], stored["timezone"]) == ("calendars", ["office"], "Europe/Berlin")
    refused = await replica.run("calendar", "delete", "office", "--yes")
    assert (refused.status, "used by the schedules s;" in refused.err) == (2, True)
    assert (await replica.done("schedule", "calendar", "--days", "8")).out.count("s\n") >= 5
    await replica.done("schedule", "edit", "s", "--only-on", "none", "--except-on", "none")
    assert world.stored(Collection.SCHEDULES, "s")["trigger"]["type"] == "cron"


async def test_calendars_are_applied_before_the_schedules_that_use_them_and_once(
    replica: Replica, tmp_path: Any
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(MANIFESTS, encoding="utf-8")
    applied: Any = (await replica.done("apply", "-f", str(file), "--yes", "--json")).json
    assert [(one["name"], one["change"]) for one in applied["documents"]] == [
        ("business-days", "created"), ("closing", "created"),
    ]  # fmt: skip
    again: Any = (await replica.done("apply", "-f", str(file), "--yes", "--json")).json
    assert {one["change"] for one in again["documents"]} == {"unchanged"}
    shown = (await replica.done("calendar", "get", "business-days", "--yaml")).out
    assert shown.startswith("kind: Calendar\nname: business-days\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["calendar", "put", "office", "--weekdays", "mo-fr"], "weekdays: 'mo-fr' is no day of the week"),
        (["calendar", "put", "office", "--include", "24.12."], "include: '24.12.' is no day"),
        (["calendar", "edit", "nobody", "--weekdays", "mon"], "no calendar 'nobody'"),
        (["schedule", "preview", "--cron", "0 9 * * *", "--only-on", "office"], "calendar"),
    ],
)
async def test_mistakes_are_named_in_one_line(replica: Replica, arguments: list[str], complaint: str) -> None:
    ended = await replica.run(*arguments)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert complaint in ended.err
