"""What is to come of stored schedules, asked of the real API: previews, dry runs, the timeline, the calendar."""

from typing import Any

import pytest

from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

_TICK = ("schedule", "add", "tick", "--every", "1s", "--definition", "log")


async def test_a_stored_schedule_is_previewed_by_the_replica(replica: Replica) -> None:
    await replica.done("schedule", "add", "nightly", "--cron", "30 2 * * *", "--timezone", "Europe/Paris",
                       "--definition", "repack")  # fmt: skip
    shown = (await replica.done("schedule", "preview", "nightly", "--count", "3")).out
    assert "Next fires of nightly" in shown
    assert "Tue 1 Jan 2030" in shown
    assert "Sun 31 Mar 2030  clocks go forward 02:00 → 03:00" in shown
    far: Any = (await replica.done("schedule", "preview", "nightly", "--from", "2035-01-01T00:00:00Z", "--json")).json
    assert far["fires"][0]["nominal_at"] == "2035-01-01T01:30:00.000Z"


async def test_the_preview_of_an_unsaved_trigger_is_that_of_the_replica(replica: Replica) -> None:
    given = ("--every", "1h", "--anchor", "2030-01-01T00:17:00Z", "--jitter", "10m")
    here: Any = (
        await replica.done("schedule", "preview", "tick", *given, "--from", "2030-01-01T00:00:00.001Z", "--json")
    ).json
    there: Any = (
        await replica.done("schedule", "add", "tick", *given, "--definition", "log", "--dry-run", "--json")
    ).json
    assert here == there["preview"]


async def test_what_is_coming_is_listed_by_schedule_and_by_day(replica: Replica) -> None:
    await replica.done("schedule", "add", "hourly", "--cron", "5 * * * *", "--definition", "log", "--label", "team=a")
    await replica.done("schedule", "add", "daily", "--cron", "30 2 * * *", "--definition", "log")
    await replica.done("schedule", "add", "off", "--every", "1s", "--definition", "log", "--paused")
    listed = [line.split() for line in (await replica.done("schedule", "timeline", "--hours", "24")).out.splitlines()]
    rows = {line[0]: line[-1] if line[-1] == "paused" else tuple(line[-2:]) for line in listed[1:-1]}
    assert rows.pop("hourly")[0].endswith(":05")
    assert rows == {"daily": ("02:30", "1"), "off": "paused"}
    counted: Any = (await replica.done("schedule", "timeline", "--label", "team=a", "--json")).json
    assert counted == {"hours": 24, "fires": {"hourly": 24}}
    days: Any = (await replica.done("schedule", "calendar", "--days", "3", "--json")).json
    whole_day = days["days"][1]["fires"]
    assert whole_day == [
        {"name": "hourly", "count": 24, "at": []},
        {"name": "daily", "count": 1, "at": ["02:30"]},
    ]
    assert "24 times  hourly" in (await replica.done("schedule", "calendar")).out
    await replica.done("schedule", "add", "few", "--every", "5m", "--definition", "log", "--max-fires", "2")
    bounded: Any = (await replica.done("schedule", "timeline", "--json")).json
    assert bounded["fires"]["few"] == 2


@pytest.mark.parametrize("command", ["timeline", "calendar"])
async def test_an_unknown_zone_is_refused(replica: Replica, command: str) -> None:
    ended = await replica.run("schedule", command, "--timezone", "../../etc/passwd")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("hascheduler: --timezone: ")


async def test_a_tried_edit_shows_what_comes_and_what_goes(replica: Replica, world: World) -> None:
    await replica.done(*_TICK)
    before = world.everything()
    shown = (await replica.done("schedule", "edit", "tick", "--every", "1500ms", "--dry-run")).out
    signs = [line.split()[0] for line in shown.splitlines() if "2030" in line]
    assert {"-", "+1", "2"} <= set(signs)
    assert world.everything() == before


async def test_a_tried_schedule_is_shown_and_not_made(replica: Replica, world: World) -> None:
    before = world.everything()
    shown = (await replica.done(*_TICK, "--dry-run")).out
    assert "every: 1s" in shown
    assert "Next fires" in shown
    assert world.everything() == before
