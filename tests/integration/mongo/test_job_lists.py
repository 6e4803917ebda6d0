"""Lists and counts of jobs, lists of verdicts: whatever is asked for, the work is bounded and along an index; pages in
a row hold each job that matches, once, in the order of the list; a count is exact, or says where there may be more."""

import random
from collections import Counter
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
from hascheduler.mongo.jobs.counts import JobCounter
from hascheduler.mongo.jobs.lists import JobLists
from hascheduler.mongo.verdicts import MongoVerdictStore
from hascheduler.ports import JobSelection, ListPosition, VerdictSelection
from tests.factories import make_job
from tests.sent_commands import SentReads
from tests.tiers import in_tier

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
    "prefix": {"id_prefix": "j00"},
    "short prefix": {"id_prefix": "j001"},
    "since": {"since_ms": WallMs(1_002)},
    "until": {"until_ms": WallMs(1_030)},
}
NOT_BOTH = ({"state", "states"}, {"prefix", "short prefix"})
NOT_COUNTED = {"made by"}
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
    for size, step in ((0, 1), (1, 1), (2, 1), (3, in_tier(check=5, test=5, long=1)))
    for names in list(combinations(ASKED, size))[::step]
    if not any(both <= set(names) for both in NOT_BOTH)
]
"""All pairs, and of threes one in five before a change lands."""
COUNTED = [names for names in COMBINATIONS if not NOT_COUNTED & set(names)]
PLACES = (None, ListPosition(1_020, "j0500"), ListPosition(1_020))


@pytest.fixture
def reads() -> SentReads:
    return SentReads()


@pytest.fixture
async def watched(database: Database, mongodb_uri: str, reads: SentReads) -> AsyncIterator[Any]:
    """The database by a client whose reads are kept."""
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, event_listeners=[reads]) as client:
        yield client[database.name]


async def done(database: Database, reads: SentReads, *, few: bool = False) -> tuple[int, int]:
    """How many keys and documents the reads examined; all went along an index, and sorted nothing but ``few``."""
    keys = documents = 0
    for command in reads.sent:
        plan = await database.command({"explain": command, "verbosity": "executionStats"})
        assert not _stages(plan) & ({"COLLSCAN"} if few else {"COLLSCAN", "SORT", "$sort"}), command
        for stats in _stats(plan):
            keys += stats["totalKeysExamined"]
            documents += stats["totalDocsExamined"]
    reads.sent.clear()
    return keys, documents


@pytest.mark.usefixtures("new_database")
async def test_each_combination_of_filters_is_listed_with_bounded_work(
    database: Database, watched: Any, reads: SentReads
) -> None:
    await database.jobs.insert_many(_jobs(random.Random(1), 1_000))
    lists = JobLists(watched, SCANNED_MAX)
    for names in COMBINATIONS:
        for after in PLACES:
            await lists.page(_selection(names), after, 10)
            searches = len(reads.sent)
            assert searches
            keys, documents = await done(database, reads, few="short prefix" in names)
            # One more a range: where it begins, and what is merged next.
            assert keys <= searches * (SCANNED_MAX + 4 * len(JobState)), (names, after)
            assert documents <= searches * (SCANNED_MAX + 2 * len(JobState)), (names, after)


@pytest.mark.usefixtures("new_database")
async def test_each_combination_of_filters_is_counted_with_bounded_work(
    database: Database, watched: Any, reads: SentReads
) -> None:
    await database.jobs.insert_many(_jobs(random.Random(1), 600))
    counter = JobCounter(watched, SCANNED_MAX)
    for names in COUNTED:
        await counter.counts(_selection(names), 10_000)
        _, documents = await done(database, reads)
        assert documents <= 2 * SCANNED_MAX + 4, names


@pytest.mark.usefixtures("new_database")
async def test_verdicts_of_all_schedules_are_listed_with_bounded_work(
    database: Database, watched: Any, reads: SentReads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "_SCANNED_MAX", SCANNED_MAX)
    kinds = cycle(NOT_FIRED)
    runs = [VerdictRun("s", next(kinds), WallMs(at), WallMs(at), 1) for at in range(1_000, 2_000)]
    await database.verdicts.insert_many([verdict_document(run, run.first_ms) for run in runs])
    store = MongoVerdictStore(watched)
    for names in (names for size in range(5) for names in combinations(VERDICTS_ASKED, size)):
        which = VerdictSelection(verdicts=NOT_FIRED)
        for name in names:
            which = which.model_copy(update=VERDICTS_ASKED[name])
        for after in (None, ListPosition(1_500, "s:0000000001500")):
            assert (await store.of_all(which, after, 10)).next is not None
            reads.sent = [{**sent, "limit": sent.get("limit", 11)} for sent in reads.sent if sent["find"] == "verdicts"]
            searches = len(reads.sent)
            _, documents = await done(database, reads)
            assert 0 < documents <= searches * (SCANNED_MAX + 2 * len(NOT_FIRED)), names


@pytest.mark.parametrize("seed", range(6))
async def test_pages_in_a_row_hold_each_job_that_matches_once_in_order(database: Database, seed: int) -> None:
    luck = random.Random(seed)
    # In one instant there are more than a page may meet.
    documents = _jobs(luck, luck.choice([30, 300]), 1 if seed == 0 else luck.choice([1, 3, 50]))
    await database.jobs.insert_many(documents)
    for _ in range(25):
        which = _selection(luck.sample(sorted(ASKED), luck.choice([0, 1, 2, 2, 3])))
        expected = [document["_id"] for document in _in_order(documents) if _matches(which, document)]
        assert await _all(JobLists(database, SCANNED_MAX), which, luck.randint(1, 20)) == expected, which


async def test_a_count_is_exact_or_says_where_there_may_be_more(database: Database) -> None:
    documents = _jobs(random.Random(1), 600)
    await database.jobs.insert_many(documents)
    exact = 0
    for names in COUNTED:
        which = _selection(names)
        counts = await JobCounter(database, SCANNED_MAX).counts(which, 10_000)
        true = Counter(document["state"] for document in documents if _matches(which, document))
        for state in which.states or JobState:
            if state in counts.at_least:
                assert counts.by_state[state] <= true[state.value], (names, state)
            else:
                assert counts.by_state[state] == true[state.value], (names, state)
        exact += not counts.at_least
    assert 0 < exact < len(COUNTED)


@pytest.mark.parametrize("broken", [None, "yesterday", 1.5, {"a": 1}])
async def test_a_job_whose_instant_was_broken_by_hand_ends_no_list_and_repeats_none(
    database: Database, broken: object
) -> None:
    documents = _jobs(random.Random(1), 10)
    await database.jobs.insert_many(documents)
    await database.jobs.update_one({"_id": "j0004"}, {"$set": {"submitted_at_ms": broken}})
    others = [document["_id"] for document in _in_order(documents) if document["_id"] != "j0004"]
    found = await _all(JobLists(database, SCANNED_MAX), JobSelection(), 1)
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
        and document["_id"].startswith(which.id_prefix or "")
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
        assert after is None or (page.next.at_ms, page.next.id or "") < (after.at_ms, after.id or "~")
        after = page.next


def _stages(plan: Any) -> set[str]:
    if isinstance(plan, list):
        return {stage for one in plan for stage in _stages(one)}
    if not isinstance(plan, dict):
        return set()
    own = {name for name in plan if name.startswith("$")} | ({plan["stage"]} if "stage" in plan else set())
    inner = ("queryPlanner", "winningPlan", "inputStage", "inputStages", "queryPlan", "stages", "$cursor")
    return own | {stage for name in inner if name in plan for stage in _stages(plan[name])}


def _stats(plan: Any) -> list[Mapping[str, int]]:
    if isinstance(plan, list):
        return [stats for one in plan for stats in _stats(one)]
    if not isinstance(plan, dict):
        return []
    if "executionStats" in plan:
        return [plan["executionStats"]]
    return [stats for name in ("stages", "$cursor") if name in plan for stats in _stats(plan[name])]
