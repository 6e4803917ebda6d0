"""``hascheduler schedule preview`` without a replica: the next fires, and what clock changes do to them."""

from typing import Any

import pytest

from hascheduler.model.values.instants import parse_instant
from tests.unit.cli.invoking import Ended, invoke

_NOBODY = "http://127.0.0.1:9"  # nothing is asked of it


def preview(*arguments: str) -> Ended:
    return invoke("schedule", "preview", *arguments, HASCHEDULER_URL=_NOBODY)


def paris(*arguments: str) -> Ended:
    return preview("--cron", "30 2 * * *", "--timezone", "Europe/Paris", *arguments)


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
        (
            ["--every", "90s", "--anchor", "2030-01-01T00:00:00Z", "--from", "2030-01-01T00:00:00Z", "--count", "2"],
            ["2030-01-01T00:00:00.000Z", "2030-01-01T00:01:30.000Z"],
        ),
        (["--at", "2030-01-31T09:30:00+01:00"], ["2030-01-31T08:30:00.000Z"]),
        (
            ["--at", "2031-01-01T00:00:00Z", "--at", "2030-01-01T00:00:00Z"],
            ["2030-01-01T00:00:00.000Z", "2031-01-01T00:00:00.000Z"],
        ),
        (
            ["--cron", "@yearly", "--start-at", "2040-01-01T00:00:00Z", "--max-fires", "2"],
            ["2040-01-01T00:00:00.000Z", "2041-01-01T00:00:00.000Z"],
        ),
        (["--cron", "0 0 1 1 *", "--end-at", "2028-06-01T00:00:00Z", "--from", "2028-02-01T00:00:00Z"], []),
    ],
    ids=["interval", "once", "times in any order", "bounded", "over"],
)
def test_every_kind_of_trigger_has_a_preview(arguments: list[str], times: list[str]) -> None:
    answer: Any = preview(*arguments, "--json").json
    assert [fire["nominal_at"] for fire in answer["fires"]] == times


def test_an_expression_that_may_not_be_meant_is_warned_of() -> None:
    ended = preview("--cron", "0 */15 * * * *")
    assert "warning: '0 */15 * * * *' fires each second of minute 0 of every 15th hour" in ended.out
    answer: Any = preview("--cron", "0 22-2 * * *", "--json").json
    assert answer["warnings"] == ["'22-2' as the hour wraps around: it is 22 to 23 and 0 to 2"]
    assert "warning" not in preview("--cron", "0 9 LW * ?", "--timezone", "europe/PARIS").out


def test_gos_every_is_an_interval() -> None:
    from_ = ("--from", "2030-01-01T00:00:00Z", "--count", "3", "--json")
    first, second, third = (
        parse_instant(fire["nominal_at"]) for fire in _fires(preview("--cron", "@every 90s", *from_))
    )
    assert (second - first, third - second) == (90_000, 90_000)


def test_a_schedule_that_is_over_says_so() -> None:
    shown = preview("--cron", "0 0 1 1 *", "--end-at", "2028-06-01T00:00:00Z", "--from", "2028-02-01T00:00:00Z").out
    assert "It will not fire any more." in shown


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
    dues = [[fire["due_at"] for fire in _fires(preview(name, *given, "--json"))] for name in ("a", "a", "b")]
    assert dues[0] == dues[1]
    assert dues[0] != dues[2]


def test_a_zone_without_clock_changes_says_so() -> None:
    assert "Clocks in Asia/Tokyo do not change" in preview("--cron", "@daily", "--timezone", "Asia/Tokyo").out


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["--cron", "* * *"], "trigger.expression"),
        (["--cron", "61 * * * *"], "trigger.expression"),
        (["--cron", "0 0 30 2 *"], "trigger.expression"),
        (["--cron", "0 0 12 * * ?"], "trigger.expression"),
        (["--cron", "@every soon"], "trigger.expression"),
        (["--cron", "* " * 5_120], "trigger.expression"),
        (["--cron", "@daily", "--timezone", "Mars/X"], "trigger.timezone"),
        (["--cron", "@daily", "--timezone", "../../etc/passwd"], "trigger.timezone"),
        (["--at", "9999-01-01T00:00:00Z"], "trigger.at"),
        (["--at", "2016-12-31T23:59:60Z"], "trigger.at"),
        (["--at", "2030-01-01T00:00:00Z", "--at", "soon"], "trigger.at.1"),
        (["--at", "2030-01-01T00:00:00"], "trigger.at"),
        (["--every", "1s", "--start-at", "2031-01-01T00:00:00Z", "--end-at", "2030-01-01T00:00:00Z"], "trigger.end_at"),
        (["--every", "-1s"], "trigger.every"),
        (["--every", "1ms"], "trigger.every"),
        (["--every", "1s", "--jitter", "2s"], "trigger.jitter"),
        (["--every", "1s", "--max-fires", "0"], "trigger.max_fires"),
        (["--every", "1s", "--max-fires", "many"], "--max-fires"),
        (["--every", "1s", "--exclude", "2030-01-01T00:00:00Z"], "--exclude"),
        (["--every", "1s", "--exclude", "2031-01-01T00:00:00Z/2030-01-01T00:00:00Z"], "trigger.exclude.0"),
        (["--every", "1s", "--cron", "@daily"], "trigger.of.1.every"),
        (["--every", "1s", "--timezone", "UTC"], "--timezone"),
        (["--cron", "@daily", "--anchor", "2030-01-01T00:00:00Z"], "--anchor"),
        (["--jitter", "1s"], "--cron"),
        (["--every", "1s", "--count", "0"], "--count"),
        (["--every", "1s", "--count", "x"], "--count"),
        (["--every", "1s", "--from", "yesterday"], "--from"),
        ([], "NAME"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], where: str) -> None:
    ended = preview(*arguments)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(f"hascheduler: {where}")
    assert len(ended.err) < 1_000


def _fires(ended: Ended) -> list[dict[str, Any]]:
    answer: Any = ended.json
    return list(answer["fires"])
