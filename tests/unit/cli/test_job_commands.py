"""``hascheduler job …`` and ``hascheduler why`` against the real API."""

from typing import Any

import pytest

from hascheduler.clock import SystemClock
from hascheduler.dispatch.explanation import Block, BlockReason, CriterionValue, Explanation, QueuePosition
from hascheduler.model.collection import Collection
from hascheduler.model.policy import Criterion
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import JobPage, JobSelection, ListPosition
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica

ID = "job:0001"


async def test_a_job_is_submitted_shown_listed_and_cancelled(replica: Replica) -> None:
    assert (await replica.done("job", "submit", "log")).out == f"submitted {ID}\n"
    shown = (await replica.done("job", "get", ID)).out
    assert f"id: {ID}\nstate: pending\n" in shown
    assert "unschedulable" not in shown
    assert ID in (await replica.done("job", "list", "--state", "pending", COLUMNS="140")).out
    assert (await replica.done("job", "list", "--state", "failed")).out == "There are no such jobs.\n"
    for answered in (f"cancelled {ID}\n", f"{ID} had ended already\n"):
        assert (await replica.done("job", "cancel", ID)).out == answered


async def test_where_an_attempt_failed_is_shown_below_the_attempts(replica: Replica, world: World) -> None:
    await replica.done("job", "submit", "log")
    record = {"number": 1, "processor": "p", "finished_at_ms": NOW, "outcome": "failed", "error": "no"}
    told = "Traceback (most recent call last):\n  File mine.py\x1b[2J\nValueError: no"
    records = [{**record, "traceback": told}, {**record, "number": 2}]
    world.rewrite(Collection.JOBS, ID, state="failed", error="no", attempts=records)
    shown = (await replica.done("job", "get", ID)).out
    assert "\nattempt 1:\nTraceback (most recent call last):\n  File mine.py\\x1b[2J\nValueError: no\n" in shown
    assert "attempt 2:" not in shown
    assert "mine.py" not in (await replica.done("job", "list", "--json")).out


async def test_every_field_of_a_job_has_an_option(replica: Replica) -> None:
    body = {
        "definition": "log", "target": "demo", "payload": None, "priority": 9, "tenant": "acme", "fairness_key": "k",
        "lane": "bulk", "mode": "on_demand", "resources": {"cpu": 2}, "labels": {"a": "b"},
        "not_before": "2031-01-01T00:00:00.000Z",
    }  # fmt: skip
    options = (
        "--target demo --payload null --priority 9 --tenant acme --fairness-key k --lane bulk --mode on_demand "
        "--resources cpu=2 --label a=b --not-before 2031-01-01T00:00:00Z"
    )
    made = await replica.json("job", "submit", "log", *options.split())
    assert {name: made[name] for name in body} == body


async def test_a_list_is_of_those_that_match(replica: Replica, world: World) -> None:
    for options in ("--target site --label team=a", "--tenant acme", "--label team=b"):
        await replica.done("job", "submit", "log", *options.split())
    hours_ago = SystemClock().wall_ms() - 7_200_000
    for number, (state, at_ms) in enumerate((("failed", hours_ago), ("running", NOW + 2), ("pending", NOW + 3)), 1):
        batch = f"batch:{number}"
        world.rewrite(Collection.JOBS, f"job:000{number}", state=state, submitted_at_ms=at_ms, batch=batch)
    world.view.never_to_run = {"job:0003"}
    for filter, expected in (
        ("--target site", "1"),
        ("--label team=a", "1"),
        ("--tenant acme", "2"),
        ("--batch batch:1", "1"),
        ("--id job:0002", "2"),
        ("--state failed --state pending", "31"),
        ("--since 2030-01-01T00:00:00.002Z", "32"),
        ("--until 2030-01-01T00:00:00.002Z", "1"),
        ("--since 3h --until 1h --state failed", "1"),
        ("--unschedulable", "3"),
    ):
        listed = await replica.json("job", "list", *filter.split())
        assert [job["id"] for job in listed["items"]] == [f"job:000{number}" for number in expected], filter
        assert listed["next"] is None


async def test_jobs_are_printed_in_each_form(replica: Replica) -> None:
    await replica.done("job", "submit", "log", "--target", "site")
    for command in (("job", "list"), ("job", "get", ID)):
        assert (await replica.done(*command, "-o", "name")).out == f"{ID}\n"
        assert f"id: {ID}\nstate: pending\n" in (await replica.done(*command, "-o", "yaml")).out
        assert (await replica.done(*command, "-o", "json")).out == (await replica.done(*command, "--json")).out
    assert "processor" in (await replica.done("job", "list", "-o", "wide")).out


async def test_a_list_goes_on_until_it_has_as_many_as_are_wanted(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await replica.done("job", "submit", "log")
    lists = world.jobs.list

    async def one_at_most(which: JobSelection, after: ListPosition | None, limit: int) -> JobPage:
        page = await lists(which, after, 1)
        if after is None:
            return JobPage([], ListPosition(NOW))  # where few match a page may be empty, and have a next one
        return page

    monkeypatch.setattr(world.jobs, "list", one_at_most)
    for limit, expected in ((2, ["job:0003", "job:0002"]), (20, ["job:0003", "job:0002", "job:0001"])):
        listed: Any = (await replica.done("job", "list", "--limit", str(limit), "--json")).json
        assert [job["id"] for job in listed["items"]] == expected


async def test_what_stands_out_of_a_job_is_listed_and_shown(replica: Replica, world: World) -> None:
    await replica.done("job", "submit", "log")
    assert "progress" not in (await replica.done("job", "list", COLUMNS="160")).out
    attempt = {"number": 1, "processor": "p-1", "dispatched_at_ms": NOW, "started_at_ms": NOW, "outcome": "failed",
               "finished_at_ms": NOW, "error": "it broke"}  # fmt: skip
    progress = {"percent": 40, "text": "2 of 5 pages", "at_ms": NOW}
    world.rewrite(Collection.JOBS, ID, state="running", progress=progress, attempts=[attempt], losses=4)
    assert "40 % 2 of 5 pages" in (await replica.done("job", "list", COLUMNS="160")).out
    assert (await replica.done("job", "list", "--columns", "job,losses")).out.split()[-1] == "4"
    shown = (await replica.done("job", "get", ID, COLUMNS="120")).out
    assert "progress:\n  percent: 40.0\n  text: 2 of 5 pages\n" in shown
    assert [line.split()[:2] for line in shown.splitlines() if "it broke" in line] == [["1", "failed"]]
    world.rewrite(Collection.JOBS, ID, state="pending")
    world.view.never_to_run = {ID}
    assert "unschedulable" in (await replica.done("job", "list", COLUMNS="140")).out
    assert "unschedulable: true" in (await replica.done("job", "get", ID)).out


async def test_failed_jobs_are_listed_with_what_went_wrong(replica: Replica, world: World) -> None:
    assert (await replica.done("job", "failed")).out == "No job has failed.\n"
    await replica.done("job", "submit", "log")
    await replica.done("job", "submit", "log", "--tenant", "acme")
    world.rewrite(Collection.JOBS, ID, state="failed", finished_at_ms=NOW, error="it broke", failures=5)
    shown = (await replica.done("job", "failed", COLUMNS="120")).out
    [row] = [line.split() for line in shown.splitlines() if "it broke" in line]
    assert (row[0], row[3]) == (ID, "5")
    assert (await replica.done("job", "failed", "--tenant", "acme")).out == "No job has failed.\n"
    listed = await replica.json("job", "failed")
    assert [job["id"] for job in listed["items"]] == [ID]


async def test_why_tells_what_holds_a_job_back_and_what_would_end_that(replica: Replica, world: World) -> None:
    cap = Block(BlockReason.DEFINITION, "3 of at most 3 jobs of log run", "when one of them ends")
    late = Block(BlockReason.NOT_BEFORE, "it may not run yet", "time passes", {}, WallMs(NOW + 1_000))
    world.view.explanations[ID] = Explanation(ID, "waiting", blocks=(cap, late))
    shown = (await replica.done("why", ID, COLUMNS="120")).out
    assert shown.startswith(f"{ID}  pending\n● 3 of at most 3 jobs of log run\n  → when one of them ends\n")
    assert "● it may not run yet  (until 2030-01-01T00:00:01Z, in " in shown


async def test_why_compares_a_job_with_the_next_in_line(replica: Replica, world: World) -> None:
    worths = (CriterionValue(Criterion.LANE, "1/8", "1/8"), CriterionValue(Criterion.FAIRNESS, "40 s", "3 s"))
    standing = QueuePosition(2, True, "job:0000", Criterion.FAIRNESS, worths)
    world.view.explanations[ID] = Explanation(ID, "waiting", position=standing)
    lines = (await replica.done("why", ID)).out.splitlines()
    assert "nothing holds it back, 2 jobs go before it" in lines
    assert any("next: job:0000" in line for line in lines)
    [deciding] = [line.split() for line in lines if "decides" in line]
    assert deciding == ["fairness", "40", "s", "3", "s", "decides"]


async def test_a_job_that_waits_for_a_slot_has_its_place_too(replica: Replica, world: World) -> None:
    full = Block(BlockReason.NO_SLOT, "no slot is free: p-1 has 8 of 8 slots taken", "when a job there ends")
    standing = QueuePosition(0, True, ID, None, (CriterionValue(Criterion.TIER, "1", "1"),))
    world.view.explanations[ID] = Explanation(ID, "waiting", blocks=(full,), position=standing)
    assert (await replica.done("why", ID)).out.endswith("  → when a job there ends\nit is next\n")


async def test_why_of_a_job_that_has_ended(replica: Replica, world: World) -> None:
    await replica.done("job", "submit", "log")
    world.rewrite(Collection.JOBS, ID, state="succeeded", finished_at_ms=NOW)
    assert "it succeeded at 2030-01-01T00:00:00Z\n" in (await replica.done("why", ID)).out
    answer = await replica.json("why", ID)
    assert (answer["state"], answer["seen"]) == ("succeeded", False)


async def test_times_are_those_of_the_reader_except_for_programs(replica: Replica, world: World) -> None:
    sentence = "it is not to run before 2030-01-01T00:00:01.000Z"
    late = Block(BlockReason.NOT_BEFORE, sentence, "time passes", {}, WallMs(NOW + 1_000))
    world.view.explanations[ID] = Explanation(ID, "waiting", blocks=(late,))
    local = "it is not to run before 2030-01-01 01:00:01 CET  (until 2030-01-01 01:00:01 CET, in "
    assert local in (await replica.done("why", ID, TZ="Europe/Paris", COLUMNS="140")).out
    for arguments in (("why", ID, "--utc"), ("--utc", "why", ID)):
        shown = (await replica.done(*arguments, TZ="Europe/Paris", COLUMNS="140")).out
        assert "before 2030-01-01T00:00:01Z  (until 2030-01-01T00:00:01Z, in " in shown
    assert sentence in (await replica.done("why", ID, "--json", TZ="Europe/Paris")).out
    payload = '{"submitted_at": "2030-01-01T00:00:00.000Z"}'
    await replica.done("job", "submit", "log", "--payload", payload)
    shown = (await replica.done("job", "get", ID, TZ="Europe/Paris")).out
    assert "\nsubmitted_at: 2030-01-01 01:00:00 CET\n" in shown
    assert "  submitted_at: '2030-01-01T00:00:00.000Z'\n" in shown


async def test_jobs_are_counted_by_state_and_it_is_said_where_there_may_be_more(
    replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await replica.done("job", "submit", "log", "--target", "site")
    world.rewrite(Collection.JOBS, ID, state="failed")
    rows = [line.split() for line in (await replica.done("job", "counts", "--target", "site")).out.splitlines()]
    assert (["failed", "1"] in rows, ["all", "1"] in rows) == (True, True)
    answer = await replica.json("job", "counts", "--state", "failed")
    assert (answer["failed"], answer["exact"]) == (1, True)
    monkeypatch.setattr("hascheduler.api.jobs.read.COUNTED_MAX", 0)
    assert "0 or more" in (await replica.done("job", "counts")).out


async def test_errors_are_grouped(replica: Replica, world: World) -> None:
    assert (await replica.done("job", "errors")).out == "No job has failed.\n"
    for number in (1, 2):
        await replica.done("job", "submit", "log")
        world.rewrite(Collection.JOBS, f"job:000{number}", state="failed", error=f"no answer in {number} s")
    shown = (await replica.done("job", "errors", COLUMNS="140")).out
    assert "no answer in <n> s" in shown
    answer = await replica.json("job", "errors", "--id", "job:")
    assert [group["count"] for group in answer["groups"]] == [2]
