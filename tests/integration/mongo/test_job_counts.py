"""Counts of jobs by state: whatever is asked for, the work is bounded, and a count says where there may be more."""

import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from itertools import combinations
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from hascheduler.model.documents.job import new_job_document
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import Database
from hascheduler.mongo.jobs.counts import JobCounter
from hascheduler.ports import JobSelection
from tests.factories import make_job
from tests.sent_commands import SentReads

EXAMINED_MAX = 40
JOBS = 600
ASKED: Mapping[str, Mapping[str, Any]] = {
    "state": {"states": (JobState.FAILED, JobState.SUCCEEDED)},
    "definition": {"definition": "d1"},
    "rare": {"definition": "d2"},
    "tenant": {"tenant": "t1"},
    "label": {"labels": {"team": "a"}},
    "ids": {"ids": ("j0001", "j0100")},
    "prefix": {"id_prefix": "j00"},
    "short prefix": {"id_prefix": "j000"},
    "since": {"since_ms": WallMs(1_040)},
}
COMBINATIONS = [
    names
    for size in (0, 1, 2, 3)
    for names in combinations(ASKED, size)
    if not {"definition", "rare"} <= set(names) and not {"prefix", "short prefix"} <= set(names)
]


@pytest.fixture
def reads() -> SentReads:
    return SentReads()


@pytest.fixture
async def counter(database: Database, mongodb_uri: str, reads: SentReads) -> AsyncIterator[JobCounter]:
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri, event_listeners=[reads]) as client:
        yield JobCounter(client[database.name], EXAMINED_MAX)


@pytest.fixture
async def documents(database: Database) -> list[dict[str, Any]]:
    luck = random.Random(1)
    states = [JobState.SUCCEEDED] * 60 + [JobState.FAILED, JobState.PENDING, JobState.CANCELLED]
    found = []
    for number in range(JOBS):
        one = make_job(
            f"j{number:04d}",
            definition="d2" if number % 30 == 0 else "d1",
            tenant=luck.choice(["t1", "t2"]),
            labels={"team": luck.choice("ab")},
            submitted_at_ms=WallMs(1_000 + luck.randrange(50)),
        )
        found.append({**new_job_document(one), "state": luck.choice(states).value})
    await database.jobs.insert_many(found)
    return found


@pytest.mark.usefixtures("new_database")
async def test_the_work_of_each_count_is_bounded(
    database: Database, counter: JobCounter, reads: SentReads, documents: list[dict[str, Any]]
) -> None:
    for names in COMBINATIONS:
        reads.sent.clear()
        await counter.counts(_selection(names), 10_000)
        examined = 0
        for command in reads.sent:
            explained = {"explain": command, "verbosity": "executionStats"}
            plan = await database.command(explained)
            assert not _stages(plan) & {"COLLSCAN", "SORT", "$sort"}, (names, command)
            examined += sum(_docs_examined(plan))
        assert examined <= 2 * EXAMINED_MAX + 4, (names, examined)


async def test_a_count_is_exact_or_says_where_there_may_be_more(
    counter: JobCounter, documents: list[dict[str, Any]]
) -> None:
    exact = 0
    for names in COMBINATIONS:
        which = _selection(names)
        counts = await counter.counts(which, 10_000)
        true = Counter(document["state"] for document in documents if _matches(which, document))
        for state in which.states or JobState:
            if state in counts.at_least:
                assert counts.by_state[state] <= true[state.value], (names, state)
            else:
                assert counts.by_state[state] == true[state.value], (names, state)
        exact += not counts.at_least
    assert 0 < exact < len(COMBINATIONS)


async def test_few_that_failed_are_counted_exactly_among_many(
    counter: JobCounter, documents: list[dict[str, Any]]
) -> None:
    counts = await counter.counts(JobSelection(tenant="t1"), 10_000)
    assert counts.at_least == {JobState.SUCCEEDED}
    assert counts.by_state[JobState.SUCCEEDED] > 0


@pytest.mark.usefixtures("new_database")
async def test_states_alone_are_counted_in_the_index(
    database: Database, counter: JobCounter, reads: SentReads, documents: list[dict[str, Any]]
) -> None:
    counts = await counter.counts(JobSelection(since_ms=WallMs(1_010)), 10_000)
    assert sum(counts.by_state.values()) == sum(document["submitted_at_ms"] >= 1_010 for document in documents)
    for command in reads.sent:
        plan = await database.command({"explain": command, "verbosity": "executionStats"})
        assert sum(_docs_examined(plan)) == 0


def _selection(names: Any) -> JobSelection:
    which = JobSelection()
    for name in names:
        which = which.model_copy(update=ASKED[name])
    return which


def _matches(which: JobSelection, document: dict[str, Any]) -> bool:
    return (
        (not which.states or document["state"] in which.states)
        and which.definition in (None, document["definition"])
        and which.tenant in (None, document["tenant"])
        and which.labels.items() <= document["labels"].items()
        and (which.ids is None or document["_id"] in which.ids)
        and str(document["_id"]).startswith(which.id_prefix or "")
        and (which.since_ms is None or document["submitted_at_ms"] >= which.since_ms)
    )


def _stages(plan: Any) -> set[str]:
    if isinstance(plan, list):
        return {stage for one in plan for stage in _stages(one)}
    if not isinstance(plan, dict):
        return set()
    own = {name for name in plan if name.startswith("$")} | ({plan["stage"]} if "stage" in plan else set())
    inner = ("queryPlanner", "winningPlan", "inputStage", "inputStages", "queryPlan", "stages", "$cursor")
    return own | {stage for name in inner if name in plan for stage in _stages(plan[name])}


def _docs_examined(plan: Any) -> list[int]:
    if isinstance(plan, list):
        return [count for one in plan for count in _docs_examined(one)]
    if not isinstance(plan, dict):
        return []
    if "executionStats" in plan:
        return [plan["executionStats"]["totalDocsExamined"]]
    return [count for name in ("stages", "$cursor") if name in plan for count in _docs_examined(plan[name])]
