"""Lists of jobs and of verdicts: whatever is asked for, a page is read along an index, in its order, with bounded work;
pages in a row hold each job that matches, once, in the order of the list."""

import random
from collections.abc import AsyncIterator, Mapping
from itertools import combinations, cycle
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.job import JobState, ScheduleId
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.mongo import verdicts
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.lists import JobLists
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.ports import JobPage, JobSelection, ListPosition, VerdictSelection
from tests.factories import make_job
from tests.sent_commands import SentReads, stages_of

SCANNED_MAX = 40
ASKED: Mapping[str, Mapping[str, Any]] = {
    "state": {"states": (JobState.FAILED,)},
    "states": {"states": tuple(JobState)},
    "definition": {"definition": "d1"},
    "schedule": {"schedule": "s1"},
    "made by": {"made_by": ScheduleId("s1", "t1", WallMs(1))},
    "tenant": {"tenant": "t1"},
    "batch": {"batch": "b1"},
    "target": {"target": "x1"},
    "label": {"labels": {"team": "a"}},
    "ids": {"ids": ("j0001", "j0500")},
    "since": {"since_ms": WallMs(1_002)},
    "until": {"until_ms": WallMs(1_030)},
}
NOT_FIRED = tuple(verdict for verdict in Verdict if verdict is not Verdict.FIRED)
VERDICTS_ASKED: Mapping[str, Mapping[str, Any]] = {
    "missed": {"verdicts": (Verdict.MISSED,)},
    "since": {"since_ms": WallMs(1_002)},
    "until": {"until_ms": WallMs(1_900)},
    "tenant": {"tenant": "t1"},
    "label": {"labels": {"team": "a"}},
    "text": {"text": "x"},
}
COMBINATIONS = [
    names
    for size in (0, 1, 2, 3, len(ASKED) - 1)
    for names in combinations(ASKED, size)
    if not {"state", "states"} <= set(names)
]
PLACES = (None, ListPosition(1_020, "j0500"), ListPosition(1_020))


@pytest.fixture
def finds() -> SentReads:
    return SentReads()


@pytest.fixture
async def lists(database: Database, mongodb_uri: str, finds: SentReads) -> AsyncIterator[JobLists]:
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, event_listeners=[finds]) as client:
        yield JobLists(client[database.name], SCANNED_MAX)


@pytest.mark.usefixtures("new_database")
async def test_each_combination_of_filters_is_read_along_an_index_with_bounded_work(
    database: Database, lists: JobLists, finds: SentReads
) -> None:
    await database.jobs.insert_many(_jobs(random.Random(1), 1_000))
    for names in COMBINATIONS:
        which = _selection(names)
        for after in PLACES:
            finds.sent.clear()
            await lists.page(which, after, 10)
            assert finds.sent
            for command in list(finds.sent):
                plan = await database.command({"explain": command, "verbosity": "executionStats"})
                stages = {stage["stage"] for stage in stages_of(plan["queryPlanner"]["winningPlan"])}
                assert not stages & {"COLLSCAN", "SORT"}, (names, after, command, stages)
                did = plan["executionStats"]
                # One more a range: where it begins, and what is merged next.
                assert did["totalKeysExamined"] <= SCANNED_MAX + 4 * len(JobState), (names, after, command)
                assert did["totalDocsExamined"] <= SCANNED_MAX + 2 * len(JobState), (names, after, command)


@pytest.mark.usefixtures("new_database")
async def test_a_position_is_looked_up_in_the_index_alone(
    database: Database, lists: JobLists, finds: SentReads
) -> None:
    await database.jobs.insert_many(_jobs(random.Random(1), 1_000))
    await lists.page(JobSelection(definition="d1", labels={"team": "none"}), None, 10)
    [edge, _] = finds.sent
    plan = await database.command({"explain": edge, "verbosity": "executionStats"})
    assert plan["executionStats"]["totalDocsExamined"] == 0


@pytest.mark.parametrize("seed", range(6))
async def test_pages_in_a_row_hold_each_job_that_matches_once_in_order(
    database: Database, lists: JobLists, seed: int
) -> None:
    luck = random.Random(seed)
    documents = _jobs(luck, luck.choice([30, 300]), luck.choice([1, 3, 50]))
    await database.jobs.insert_many(documents)
    for _ in range(25):
        which = _selection(luck.sample(sorted(ASKED), luck.choice([0, 1, 2, 2, 3])))
        expected = [document["_id"] for document in _in_order(documents) if _matches(which, document)]
        assert await _all(lists, which, luck.randint(1, 20)) == expected, which


async def test_jobs_of_one_instant_that_are_more_than_a_page_may_meet_are_listed_all_the_same(
    database: Database, lists: JobLists
) -> None:
    documents = _jobs(random.Random(1), 5 * SCANNED_MAX, 1)
    await database.jobs.insert_many(documents)
    which = JobSelection(definition="d1", labels={"team": "a"})
    expected = [document["_id"] for document in _in_order(documents) if _matches(which, document)]
    assert expected
    assert await _all(lists, which, 3) == expected


@pytest.mark.usefixtures("new_database")
async def test_verdicts_of_all_schedules_are_read_along_an_index_with_bounded_work(
    database: Database, finds: SentReads, mongodb_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "_SCANNED_MAX", SCANNED_MAX)
    kinds = cycle(NOT_FIRED)
    runs = [VerdictRun("s", next(kinds), WallMs(at), WallMs(at), 1) for at in range(1_000, 2_000)]
    await database.verdicts.insert_many([verdict_document(run, run.first_ms) for run in runs])
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, event_listeners=[finds]) as client:
        store = MongoVerdictStore(client[database.name])
        for names in (names for size in range(5) for names in combinations(VERDICTS_ASKED, size)):
            which = VerdictSelection(verdicts=NOT_FIRED)
            for name in names:
                which = which.model_copy(update=VERDICTS_ASKED[name])
            for after in (None, ListPosition(1_500, "s:0000000001500")):
                finds.sent.clear()
                assert (await store.of_all(which, after, 10)).next is not None
                sent = [command for command in finds.sent if command["find"] == "verdicts"]
                assert sent
                for command in sent:
                    explained = {
                        "explain": {**command, "limit": command.get("limit", 11)},
                        "verbosity": "executionStats",
                    }
                    plan = await database.command(explained)
                    stages = {stage["stage"] for stage in stages_of(plan["queryPlanner"]["winningPlan"])}
                    assert not stages & {"COLLSCAN", "SORT"}, (names, command)
                    assert plan["executionStats"]["totalDocsExamined"] <= SCANNED_MAX + 2 * len(NOT_FIRED), names


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.usefixtures("new_database")
async def test_ids_that_begin_so_are_read_with_bounded_work(
    database: Database, lists: JobLists, finds: SentReads, few: bool
) -> None:
    """Where many begin so, a page is read as if nothing was said of ids."""
    await database.jobs.insert_many(_jobs(random.Random(1), 1_000))
    which = JobSelection(id_prefix="j001" if few else "j00")
    for after in PLACES:
        finds.sent.clear()
        await lists.page(which, after, 10)
        assert finds.sent[-1]["hint"] == ("_id_" if few else "submitted")
        for command in finds.sent:
            plan = await database.command({"explain": command, "verbosity": "executionStats"})
            did = plan["executionStats"]
            assert "COLLSCAN" not in {stage["stage"] for stage in stages_of(plan["queryPlanner"]["winningPlan"])}
            assert did["totalKeysExamined"] <= SCANNED_MAX + 4
            assert did["totalDocsExamined"] <= SCANNED_MAX + 2


@pytest.mark.parametrize("id_prefix", ["j0", "j00", "j001", "fire:s1:", "fire:s1:1", "fire:s1:100", "none"])
@pytest.mark.parametrize("limit", [1, 3, 20])
async def test_pages_of_ids_that_begin_so_hold_each_once_in_order(
    database: Database, lists: JobLists, id_prefix: str, limit: int
) -> None:
    documents = _jobs(random.Random(2), 150)
    documents += [
        {**document, "_id": f"fire:s{1 + number % 2}:{1_000 + number}", "schedule": f"s{1 + number % 2}"}
        for number, document in enumerate(_jobs(random.Random(3), 150))
    ]
    await database.jobs.insert_many(documents)
    for others in ({}, {"definition": "d1"}, {"states": (JobState.FAILED,)}, {"labels": {"team": "a"}}):
        which = JobSelection(id_prefix=id_prefix).model_copy(update=others)
        among = [document for document in _in_order(documents) if str(document["_id"]).startswith(id_prefix)]
        expected = [document["_id"] for document in among if _matches(which, document)]
        assert await _all(lists, which, limit) == expected


async def test_where_few_match_a_page_ends_early_and_names_no_job(database: Database, lists: JobLists) -> None:
    documents = [{**document, "labels": {}} for document in _jobs(random.Random(1), 1_000)]
    await database.jobs.insert_many(documents)
    page = await lists.page(JobSelection(labels={"team": "a"}), None, 10)
    assert page == JobPage([], ListPosition(_in_order(documents)[SCANNED_MAX]["submitted_at_ms"]))


async def test_of_several_indexes_the_shortest_range_is_read(
    database: Database, lists: JobLists, finds: SentReads
) -> None:
    await database.jobs.insert_many(_jobs(random.Random(1), 1_000))
    await database.jobs.update_many({}, {"$set": {"state": "succeeded"}})
    await database.jobs.update_one({"_id": "j0003"}, {"$set": {"state": "failed", "definition": "d1"}})
    page = await lists.page(JobSelection(states=(JobState.FAILED,), definition="d1"), None, 10)
    assert ([document["_id"] for document in page.documents], page.next) == (["j0003"], None)
    assert finds.sent[-1]["hint"] == "state_submitted"


@pytest.mark.parametrize("broken", [None, "yesterday", 1.5, {"a": 1}])
async def test_a_job_whose_instant_was_broken_by_hand_ends_no_list_and_repeats_none(
    database: Database, lists: JobLists, broken: object
) -> None:
    documents = _jobs(random.Random(1), 10)
    await database.jobs.insert_many(documents)
    await database.jobs.update_one({"_id": "j0004"}, {"$set": {"submitted_at_ms": broken}})
    others = [document["_id"] for document in _in_order(documents) if document["_id"] != "j0004"]
    found = await _all(lists, JobSelection(), 1)
    assert [id for id in found if id != "j0004"] == others
    assert found.count("j0004") <= 1


def _selection(names: Any) -> JobSelection:
    which = JobSelection()
    for name in names:
        which = which.model_copy(update=ASKED[name])
    return which


def _jobs(luck: random.Random, count: int, instants: int = 50) -> list[dict[str, Any]]:
    documents = []
    for number in range(count):
        schedule = luck.choice([None, "s1", "s2"])
        one = make_job(
            f"j{number:04d}",
            definition=luck.choice(["d1", "d2"]),
            target=luck.choice(["x1", "x2"]),
            tenant=luck.choice(["t1", "t2"]),
            batch=luck.choice([None, "b1", "b2"]),
            schedule=schedule,
            schedule_created_at_ms=None if schedule is None else WallMs(luck.choice([1, 2])),
            labels={"team": luck.choice("ab")},
            submitted_at_ms=WallMs(1_000 + luck.randrange(instants)),
        )
        documents.append({**new_job_document(one), "state": luck.choice(list(JobState)).value})
    return documents


def _in_order(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(documents, key=lambda document: (document["submitted_at_ms"], document["_id"]), reverse=True)


def _matches(which: JobSelection, document: dict[str, Any]) -> bool:
    at_ms = document["submitted_at_ms"]
    made_by = which.made_by
    return (
        (not which.states or document["state"] in which.states)
        and which.definition in (None, document["definition"])
        and which.schedule in (None, document["schedule"])
        and which.tenant in (None, document["tenant"])
        and which.batch in (None, document["batch"])
        and which.target in (None, document["target"])
        and which.labels.items() <= document["labels"].items()
        and (which.ids is None or document["_id"] in which.ids)
        and (which.since_ms is None or at_ms >= which.since_ms)
        and (which.until_ms is None or at_ms < which.until_ms)
        and (
            made_by is None
            or (document["schedule"] == made_by.name and document["schedule_created_at_ms"] == made_by.created_at_ms)
        )
    )


async def _all(lists: JobLists, which: JobSelection, limit: int) -> list[str]:
    found: list[str] = []
    after: ListPosition | None = None
    while True:
        page = await lists.page(which, after, limit)
        assert len(page.documents) <= limit
        found += [str(document["_id"]) for document in page.documents]
        if page.next is None:
            return found
        assert after is None or (page.next.at_ms, page.next.id or "") < (
            after.at_ms,
            after.id or "~",
        )
        after = page.next
