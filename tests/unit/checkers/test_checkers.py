"""The checkers judge what callers were answered, what events told, and what calendars let, by the evidence alone."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from hascheduler.model.documents.schedule import NewSchedule
from hascheduler.model.job import backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import JobTemplate
from hascheduler.schema.trigger import CalendarUse, Cron, Trigger
from tests.checkers.evidence import Commit, Effect, Evidence, SeenEvent, Submitted
from tests.checkers.jobs import cancels_kept, events_are_history, legal_moves, nothing_extra, nothing_lost
from tests.checkers.leaders import journal_fenced, mirrors_agree
from tests.checkers.times import days_kept
from tests.system.processes import fired_times

NEVER = float("inf")


@pytest.mark.parametrize(
    ("state", "began_s", "pause", "wrong"),
    [
        ("cancelled", None, None, ""),
        ("cancelled", 4.9, None, ""),
        ("cancelled", 5.1, None, "j was cancelled at 5.000 s and began on p at 5.100 s"),
        # It had slept since before, and could not know.
        ("cancelled", 7.5, [4.0, 7.0], ""),
        ("cancelled", 8.5, [4.0, 7.0], "j was cancelled at 5.000 s and began on p at 8.500 s"),
        ("cancelled", 5.1, [1.0, 4.5], "j was cancelled at 5.000 s and began on p at 5.100 s"),
        ("succeeded", None, None, "j was acknowledged as cancelled and is succeeded"),
    ],
)
def test_a_job_that_was_acknowledged_as_cancelled_stays_so_and_does_not_begin(
    state: str, began_s: float | None, pause: list[float] | None, wrong: str
) -> None:
    evidence = Evidence(
        cancels=[("j", 6.0), ("j", 5.0)],
        effects=[] if began_s is None else [Effect("j", 1, "p", began_s)],
        pauses={} if pause is None else {"p": [pause]},
        documents={Collection.JOBS: {"j": {"_id": "j", "state": state}}},
    )
    assert cancels_kept(evidence) == ([wrong] if wrong else [])


def test_a_job_that_was_acknowledged_as_cancelled_is_not_gone() -> None:
    evidence = Evidence(cancels=[("j", 5.0)], documents={Collection.JOBS: {}})
    assert cancels_kept(evidence) == ["j was acknowledged as cancelled and is gone"]


def beats(*marks: tuple[str, str]) -> Evidence:
    documents: list[Any] = [{"_id": replica, "marks": text} for replica, text in marks]
    return Evidence(commits=[Commit(1.0, Collection.REPLICAS, None, document) for document in documents])


def test_mirrors_are_compared_at_the_points_that_more_than_one_tells_of() -> None:
    assert mirrors_agree(beats(("a", "1=x 2=y"), ("b", "2=y 3=z"), ("a", "2=y 3=z"))) == []
    assert mirrors_agree(beats(("a", "1=x 2=y"), ("b", "2=w"), ("b", "2=w"))) == ["at 2 b has w, a has y"]
    assert mirrors_agree(beats(("a", ""))) == []


def job(**fields: Any) -> dict[str, Any]:
    made = {"_id": "j", "state": "pending", "attempt": 0, "rev": 1, "nominal_ms": None, "finished_at_ms": None}
    return {**made, **fields}


def test_a_job_that_is_deleted_is_lost_and_told() -> None:
    ended = job(state="succeeded", attempt=1, rev=4, finished_at_ms=1_000)
    evidence = Evidence(
        commits=[Commit(0.5, Collection.JOBS, None, ended), Commit(9.0, Collection.JOBS, ended, None)],
        submits=[Submitted("j", 0.0, acknowledged=True)],
        documents={Collection.JOBS: {}, Collection.VERDICTS: {}},
    )
    assert nothing_lost(evidence) == ["j was acknowledged and is gone"]
    assert nothing_extra(evidence) == ["j was deleted at 9.000 s"]


def test_an_entry_of_the_journal_that_is_deleted_is_told() -> None:
    entry: Any = {"_id": {"shard": "default", "seq": 1}, "term": 1, "kind": "term_began", "holder": "r", "at_ms": 0}
    commits = [Commit(0.0, Collection.JOURNAL, None, entry), Commit(9.0, Collection.JOURNAL, entry, None)]
    assert journal_fenced(Evidence(commits=commits)) == [f"entry {entry['_id']} was deleted"]


@pytest.mark.parametrize(
    ("fields", "legal"),
    [
        ({}, True),
        ({"nominal_ms": 5, "state": "dispatched", "attempt": 1}, True),
        ({"state": "dispatched", "attempt": 1}, False),
        ({"nominal_ms": 5, "state": "dispatched", "attempt": 2}, False),
        ({"nominal_ms": 5, "state": "running", "attempt": 1}, False),
    ],
)
def test_only_a_fire_may_begin_as_dispatched(fields: dict[str, Any], legal: bool) -> None:
    evidence = Evidence(commits=[Commit(0.0, Collection.JOBS, None, job(**fields))])
    assert (legal_moves(evidence) == []) is legal


def at(id: str, state: str, **more: Any) -> dict[str, Any]:
    return {"_id": id, "state": state, "attempt": 0, "priority": 5, **more}


def lives() -> list[Commit]:
    a, b = at("a", "pending"), at("b", "dispatched", attempt=1)
    versions: list[tuple[dict[str, Any] | None, dict[str, Any] | None]] = [
        (None, a),
        (None, b),
        (a, at("a", "pending", priority=9)),
        (at("a", "pending", priority=9), at("a", "dispatched", priority=9, attempt=1)),
        (b, at("b", "running", attempt=1)),
        (at("b", "running", attempt=1), at("b", "running", attempt=1, cancel_requested_at_ms=3)),
        (at("b", "running", attempt=1), at("b", "failed", attempt=1)),
        (at("b", "failed", attempt=1), at("b", "pending", attempt=2)),
        (at("b", "pending", attempt=2), None),
    ]
    return [Commit(1.0, Collection.JOBS, before, after) for before, after in versions]


ALL = [
    "a submitted",
    "b submitted",
    "b dispatched",
    "a reprioritized",
    "a dispatched",
    "b started",
    "b cancel_requested",
    "b failed",
    "b revived",
]


def found(events: list[str]) -> list[str]:
    run = [SeenEvent(*event.split()) for event in events]
    return events_are_history(Evidence(commits=lives(), events=[run, []]))


@pytest.mark.parametrize("events", [ALL, ALL[3:], ALL[:4], ALL[2:5], []])
def test_a_run_is_a_part_of_the_history_without_a_gap(events: list[str]) -> None:
    assert found(events) == []


@pytest.mark.parametrize(
    "events",
    [ALL[:1] + ALL[2:], ALL[:-2] + ALL[-1:], ALL[1::-1], [*ALL, "b started"], ["c submitted"], [*ALL[:3], *ALL[2:]]],
)
def test_what_is_missing_doubled_made_up_or_out_of_order_is_found(events: list[str]) -> None:
    assert len(found(events)) == 1


DAY_MS = 86_400_000
NOON_MS = DAY_MS // 2
FIRED, EXCLUDED = "fired", "excluded"


def evidence(became: str, *versions: str) -> Evidence:
    """A daily noon on 1970-01-01 became that, while a calendar that it leaves out had these days in turn."""
    trigger = Trigger(Cron("0 12 * * *"), calendars=CalendarUse((), ("closed",), "UTC"))
    template = JobTemplate("log", "t", "default", "default", "", 5, "queued")
    calendars = [document_of(Calendar(name="closed", include=read_days([day]))) for day in versions]
    job, run = (
        fire_job_id("s", NOON_MS),
        {"schedule": "s", "verdict": EXCLUDED, "first_ms": NOON_MS, "last_ms": NOON_MS},
    )
    return Evidence(
        commits=[Commit(0.0, Collection.CALENDARS, None, calendar) for calendar in calendars],
        schedules={"s": NewSchedule("s", trigger, template, {}, {}, WallMs(0))},
        until_ms=DAY_MS,
        documents={
            Collection.JOBS: {job: {}} if became == FIRED else {},
            Collection.VERDICTS: {"v": run} if became == EXCLUDED else {},
        },
    )


@pytest.mark.parametrize(
    ("became", "versions"),
    [
        (EXCLUDED, ("1970-01-01",)),
        (FIRED, ("1970-01-02",)),
        (EXCLUDED, ("1970-01-01", "1970-01-02")),
        (FIRED, ("1970-01-01", "1970-01-02")),
    ],
)
def test_what_some_version_lets_is_no_violation(became: str, versions: tuple[str, ...]) -> None:
    assert days_kept(evidence(became, *versions)) == []


def test_a_fire_on_a_day_that_was_always_left_out_is_told() -> None:
    assert days_kept(evidence(FIRED, "1970-01-01", "1970-01-01/1970-01-02")) == [
        f"s fired at {NOON_MS}, on a day that was always left out"
    ]


def test_an_exclusion_on_a_day_that_always_counted_is_told() -> None:
    assert days_kept(evidence(EXCLUDED, "1970-01-02", "1970-01-03")) == [
        f"s was excluded at {NOON_MS}, on a day that always counted"
    ]


def test_a_fire_is_its_job_of_that_name_the_last_of_a_graph() -> None:
    fires = [fire_job_id("tick", 2_000), fire_job_id("tick", 1_000)]
    others = [
        graph_job_id(fires[0], "extract"), graph_job_id(fire_job_id("tick", 3_000), "load"),
        fire_job_id("tick-tock", 4_000), backfill_job_id("tick", 5_000), trigger_job_id("tick", "6000"), "job:1",
    ]  # fmt: skip
    assert fired_times("tick", [*fires, *others]) == [1_000, 2_000]
