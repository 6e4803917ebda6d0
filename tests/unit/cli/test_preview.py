"""``hascheduler schedule preview``, with a replica and without, dry runs, the timeline and the calendar."""

from typing import Any

import pytest

from hascheduler.model.values.instants import parse_instant
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Ended, Replica, invoke

_NOBODY = "http://127.0.0.1:9"  # nothing is asked of it


def preview(*arguments: str) -> Ended:
    return invoke("schedule", "preview", *arguments, HASCHEDULER_URL=_NOBODY)


def paris(*arguments: str) -> Ended:
    return preview("--cron", "30 2 * * *", "--timezone", "Europe/Paris", *arguments)


def fires(ended: Ended) -> list[dict[str, Any]]:
    answer: Any = ended.json
    return list(answer["fires"])


def test_both_clock_changes_of_a_year_are_explained() -> None:
    ended = paris("--from", "2027-01-01T00:00:00Z")
    assert (ended.status, ended.err) == (0, "")
    _, _, changes = ended.out.partition("Clock changes in Europe/Paris")
    spring, _, autumn = changes.partition("Sun 31 Oct 2027")
    assert "Sun 28 Mar 2027  clocks go forward 02:00 → 03:00" in spring
    assert "02:30 does not exist, it fires once, right after, at 03:00" in spring
    assert "clocks go back 03:00 → 02:00" in autumn
    assert "02:30 comes twice, it fires the first time only" in autumn


def test_each_fire_shows_its_local_day_and_offset_and_utc() -> None:
    shown = paris("--from", "2027-03-26T00:00:00Z", "--count", "4").out
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert any(row.startswith("1 Fri 26 Mar 2027 02:30 +01:00 2027-03-26 01:30 in ") for row in rows)
    assert any(row.startswith("3 Sun 28 Mar 2027 03:00 +02:00 2027-03-28 01:00 in ") for row in rows)
    assert any(row.startswith("4 Mon 29 Mar 2027 02:30 +02:00 2027-03-29 00:30 in ") for row in rows)


def test_what_is_shown_fits_80_columns() -> None:
    for ended in (paris(), preview("--cron", "*/7 * * * * */9", "--timezone", "Australia/Lord_Howe", "--jitter", "1s")):
        assert ended.status == 0
        assert max(len(line.rstrip()) for line in ended.out.splitlines()) <= 80


def test_the_answer_for_programs_has_the_form_of_the_api() -> None:
    answer: Any = paris("--from", "2027-03-28T00:00:00Z", "--count", "1", "--json").json
    assert answer["timezone"] == "Europe/Paris"
    [fire] = answer["fires"]
    assert fire["nominal_at"] == "2027-03-28T01:00:00.000Z"
    assert (fire["local"], fire["weekday"], fire["excluded"]) == ("2027-03-28T03:00:00+02:00", "Sun", False)
    assert [(change["kind"], change["at"]) for change in answer["clock_changes"]][:2] == [
        ("gap", "2027-03-28T01:00:00.000Z"),
        ("fold", "2027-10-31T01:00:00.000Z"),
    ]


@pytest.mark.parametrize(
    ("arguments", "times"),
    [
        ("--every 90s --anchor 2030-01-01T00:00:00Z --from 2030-01-01T00:00:00Z --count 2",
         ["2030-01-01T00:00:00.000Z", "2030-01-01T00:01:30.000Z"]),
        ("--at 2030-01-31T09:30:00+01:00", ["2030-01-31T08:30:00.000Z"]),
        ("--at 2031-01-01T00:00:00Z --at 2030-01-01T00:00:00Z",
         ["2030-01-01T00:00:00.000Z", "2031-01-01T00:00:00.000Z"]),
        ("--cron @yearly --start-at 2040-01-01T00:00:00Z --max-fires 2",
         ["2040-01-01T00:00:00.000Z", "2041-01-01T00:00:00.000Z"]),
        ("--cron @yearly --end-at 2028-06-01T00:00:00Z --from 2028-02-01T00:00:00Z", []),
    ],
    ids=["interval", "once", "times in any order", "bounded", "over"],
)  # fmt: skip
def test_every_kind_of_trigger_has_a_preview(arguments: str, times: list[str]) -> None:
    assert [fire["nominal_at"] for fire in fires(preview(*arguments.split(), "--json"))] == times
    assert ("It will not fire any more." in preview(*arguments.split()).out) == (not times)


def test_an_expression_that_may_not_be_meant_is_warned_of() -> None:
    ended = preview("--cron", "0 */15 * * * *")
    assert "warning: '0 */15 * * * *' fires each second of minute 0 of every 15th hour" in ended.out
    answer: Any = preview("--cron", "0 22-2 * * *", "--json").json
    assert answer["warnings"] == ["'22-2' as the hour wraps around: it is 22 to 23 and 0 to 2"]
    assert "warning" not in preview("--cron", "0 9 LW * ?", "--timezone", "europe/PARIS").out


def test_gos_every_is_an_interval() -> None:
    every = preview("--cron", "@every 90s", "--from", "2030-01-01T00:00:00Z", "--count", "3", "--json")
    first, second, third = (parse_instant(fire["nominal_at"]) for fire in fires(every))
    assert (second - first, third - second) == (90_000, 90_000)


def test_excluded_times_are_counted_and_do_not_use_up_the_count() -> None:
    window = "2030-01-01T00:00:00Z/2030-02-01T00:00:00Z"
    ended = preview(
        "--cron", "* * * * * *", "--exclude", window, "--from", "2029-12-31T23:59:59Z", "--count", "2", "--json"
    )  # fmt: skip
    answer: Any = ended.json
    fires = [(fire["nominal_at"], fire["excluded"], fire["note"]) for fire in answer["fires"]]
    assert fires == [
        ("2029-12-31T23:59:59.000Z", False, None),
        ("2030-01-01T00:00:00.000Z", True, "2,678,400 times are excluded, until 2030-02-01T00:00:00.000Z"),
        ("2030-02-01T00:00:00.000Z", False, None),
    ]
    since = ("--anchor", "2029-12-31T00:00:00Z", "--from", "2029-12-31T00:00:00Z")
    shown = preview("--every", "1d", *since, "--exclude", window, "--count", "2").out
    assert "×  Tue 1 Jan 2030" in shown
    assert "31 times are excluded" in shown


def test_jitter_is_shown_and_follows_from_the_name() -> None:
    given = ("--every", "1h", "--anchor", "2030-01-01T00:00:00Z", "--jitter", "30m", "--from", "2030-01-01T00:00:00Z")
    assert "jitter" in preview(*given).out
    dues = [[fire["due_at"] for fire in fires(preview(name, *given, "--json"))] for name in ("a", "a", "b")]
    assert dues[0] == dues[1]
    assert dues[0] != dues[2]


def test_a_zone_without_clock_changes_says_so() -> None:
    assert "Clocks in Asia/Tokyo do not change" in preview("--cron", "@daily", "--timezone", "Asia/Tokyo").out


_TICK = ("schedule", "add", "tick", "--every", "1s", "--definition", "log")


async def test_a_stored_schedule_is_previewed_by_the_replica(replica: Replica) -> None:
    await replica.done("schedule", "add", "nightly", "--cron", "30 2 * * *", "--timezone", "Europe/Paris",
                       "--definition", "repack")  # fmt: skip
    shown = (await replica.done("schedule", "preview", "nightly", "--count", "3")).out
    assert "Next fires of nightly" in shown
    assert "Tue 1 Jan 2030" in shown
    assert "Sun 31 Mar 2030  clocks go forward 02:00 → 03:00" in shown
    far = await replica.json("schedule", "preview", "nightly", "--from", "2035-01-01T00:00:00Z")
    assert far["fires"][0]["nominal_at"] == "2035-01-01T01:30:00.000Z"


async def test_the_preview_of_an_unsaved_trigger_is_that_of_the_replica(replica: Replica) -> None:
    given = ("--every", "1h", "--anchor", "2030-01-01T00:17:00Z", "--jitter", "10m")
    here = await replica.json("schedule", "preview", "tick", *given, "--from", "2030-01-01T00:00:00.001Z")
    there = await replica.json("schedule", "add", "tick", *given, "--definition", "log", "--dry-run")
    assert here == there["preview"]


async def test_what_is_coming_is_listed_by_schedule_and_by_day(replica: Replica) -> None:
    await replica.done("schedule", "add", "hourly", "--cron", "5 * * * *", "--definition", "log", "--label", "team=a")
    await replica.done("schedule", "add", "daily", "--cron", "30 2 * * *", "--definition", "log")
    await replica.done("schedule", "add", "off", "--every", "1s", "--definition", "log", "--paused")
    listed = [line.split() for line in (await replica.done("schedule", "timeline", "--hours", "24")).out.splitlines()]
    rows = {line[0]: line[-1] if line[-1] == "paused" else tuple(line[-2:]) for line in listed[1:-1]}
    assert rows.pop("hourly")[0].endswith(":05")
    assert rows == {"daily": ("02:30", "1"), "off": "paused"}
    counted = await replica.json("schedule", "timeline", "--label", "team=a")
    assert counted == {"hours": 24, "fires": {"hourly": 24}}
    days = await replica.json("schedule", "calendar", "--days", "3")
    whole_day = days["days"][1]["fires"]
    assert whole_day == [{"name": "hourly", "count": 24, "at": []}, {"name": "daily", "count": 1, "at": ["02:30"]}]
    assert "24 times  hourly" in (await replica.done("schedule", "calendar")).out
    await replica.done("schedule", "add", "few", "--every", "5m", "--definition", "log", "--max-fires", "2")
    bounded = await replica.json("schedule", "timeline")
    assert bounded["fires"]["few"] == 2


async def test_a_tried_edit_shows_what_comes_and_what_goes(replica: Replica, world: World) -> None:
    shown = (await replica.done(*_TICK, "--dry-run")).out
    assert ("every: 1s" in shown, "Next fires" in shown, world.everything()["schedules"]) == (True, True, [])
    await replica.done(*_TICK)
    before = world.everything()
    shown = (await replica.done("schedule", "edit", "tick", "--every", "1500ms", "--dry-run")).out
    signs = [line.split()[0] for line in shown.splitlines() if "2030" in line]
    assert {"-", "+1", "2"} <= set(signs)
    assert world.everything() == before
