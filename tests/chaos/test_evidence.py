"""What the evidence is made of: versions from the oplog, runs from the handlers' file, gaps from the journal."""

import time
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from pymongo import AsyncMongoClient

from hascheduler.model.collection import Collection
from tests.chaos.effects import read_effects
from tests.chaos.journal import decisions, dispatches, terms, took_over_s, worst_gap_s
from tests.chaos.oplog import Oplog, changed_by
from tests.checkers.evidence import Commit

DIFFERENCES = [
    ({"a": 1, "b": 2}, {"u": {"a": 3}}, {"a": 3, "b": 2}),
    ({"a": 1}, {"i": {"c": [1]}}, {"a": 1, "c": [1]}),
    ({"a": 1, "b": 2}, {"d": {"a": False}}, {"b": 2}),
    ({"a": {"x": 1, "y": 2}}, {"sa": {"u": {"x": 5}}}, {"a": {"x": 5, "y": 2}}),
    ({"a": [1, 2, 3]}, {"sa": {"a": True, "u1": 9}}, {"a": [1, 9, 3]}),
    ({"a": [1]}, {"sa": {"a": True, "u1": 2, "u2": 3}}, {"a": [1, 2, 3]}),
    ({"a": [1, 2, 3]}, {"sa": {"a": True, "l": 1}}, {"a": [1]}),
    ({"a": [{"x": 1}]}, {"sa": {"a": True, "s0": {"u": {"x": 2}}}}, {"a": [{"x": 2}]}),
]


@pytest.mark.parametrize(("before", "difference", "after"), DIFFERENCES)
def test_a_difference_gives_the_document_after_it(before: Any, difference: Any, after: Any) -> None:
    assert changed_by(before, difference) == after


@pytest.mark.real
async def test_the_oplog_gives_every_version_and_the_last_is_what_is_stored(
    mongodb_uri: str, database_name: str
) -> None:
    chance = Random(7)
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri) as client:
        since = (await client.admin.command("ping"))["operationTime"]
        jobs = client[database_name][Collection.JOBS.value]
        await jobs.insert_many([{"_id": f"j{number}", "rev": 0, "a": {"b": []}, "l": []} for number in range(5)])
        writes = 0
        for turn in range(60):
            update: Any = chance.choice(
                [
                    {"$inc": {"rev": 1}},
                    {"$push": {"l": {"n": turn}}, "$inc": {"rev": 1}},
                    {"$push": {"l": {"$each": [{"n": turn}], "$slice": -2}}, "$inc": {"rev": 1}},
                    {"$set": {"a.c": turn, f"f{turn % 3}": {"x": turn}}, "$inc": {"rev": 1}},
                    {"$unset": {"f0": ""}, "$inc": {"rev": 1}},
                    {"$push": {"a.b": turn}, "$inc": {"rev": 1}},
                    [{"$set": {"l": {"$concatArrays": ["$l", [{"n": turn}]]}, "rev": {"$add": ["$rev", 1]}}}],
                ]
            )
            writes += (await jobs.update_one({"_id": f"j{turn % 5}"}, update)).modified_count
        await jobs.delete_one({"_id": "j4"})
        oplog = Oplog(client, database_name, since, epoch_ms=0)
        await oplog.read()
        stored = {job["_id"]: job async for job in jobs.find()}
    assert {id: each[-1].after for id, each in _by_id(oplog.commits).items()} == {**stored, "j4": None}
    assert len(oplog.commits) == 5 + writes + 1
    for each in _by_id(oplog.commits).values():
        revs = [commit.after["rev"] for commit in each if commit.after is not None]
        assert revs == list(range(len(revs)))


def _by_id(commits: list[Commit]) -> dict[str, list[Commit]]:
    found: dict[str, list[Commit]] = {}
    for commit in commits:
        found.setdefault(commit.id, []).append(commit)
    return found


@pytest.mark.real
async def test_a_dropped_collection_is_the_end_of_each_of_its_documents(mongodb_uri: str, database_name: str) -> None:
    async with AsyncMongoClient[dict[str, Any]](mongodb_uri) as client:
        since = (await client.admin.command("ping"))["operationTime"]
        leases = client[database_name][Collection.LEASES.value]
        await leases.insert_one({"_id": "default", "term": 1})
        await leases.drop()
        oplog = Oplog(client, database_name, since, epoch_ms=time.time_ns() // 1_000_000)
        await oplog.read()
    assert [commit.after for commit in oplog.commits] == [{"_id": "default", "term": 1}, None]
    assert all(abs(commit.at_s) < 60 for commit in oplog.commits)


def test_a_run_has_a_beginning_and_an_end_unless_it_was_cut_short(tmp_path: Path) -> None:
    sink = tmp_path / "effects"
    lines = [
        {"what": "begin", "job": "a", "attempt": 1, "process": "p1/7", "wall_ns": 5_000_900_000},
        {"what": "begin", "job": "b", "attempt": 2, "process": "p2/8", "wall_ns": 5_100_000_000},
        {"what": "end", "job": "a", "attempt": 1, "process": "p1/7", "wall_ns": 5_200_000_000},
    ]
    sink.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    [first, second] = read_effects(sink, epoch_ms=1_000)
    assert (first.job_id, first.attempt, first.processor, first.began_s, first.ended_s) == ("a", 1, "p1/7", 4.0, 4.2)
    assert (second.job_id, second.ended_s) == ("b", None)


def test_the_worst_gap_reaches_to_both_ends() -> None:
    decided = [(1.0, 1), (1.5, 1), (4.0, 2), (4.2, 2)]
    assert worst_gap_s(decided, 0.5, 5.0) == pytest.approx(2.5)
    assert worst_gap_s(decided, 0.5, 9.2) == pytest.approx(5.0)
    assert worst_gap_s([], 1.0, 3.0) == pytest.approx(2.0)


def test_a_dispatch_is_a_decision_and_not_each_decision_is_one() -> None:
    entries: list[dict[str, Any]] = [
        {"_id": {"seq": 1}, "term": 1, "kind": "term_began", "decisions": []},
        {"_id": {"seq": 2}, "term": 1, "kind": "decisions", "decisions": [["fire", "s", 5]]},
        {"_id": {"seq": 3}, "term": 1, "kind": "decisions", "decisions": [["fire", "s", 6], ["dispatch", "j", 1, "p"]]},
    ]
    commits = [Commit(float(entry["_id"]["seq"]), Collection.JOURNAL, None, entry) for entry in entries]
    assert decisions(commits) == [(2.0, 1), (3.0, 1)]
    assert dispatches(commits) == [(3.0, 1)]
    assert terms(commits) == 1


def test_who_takes_over_decides_in_a_later_term() -> None:
    decided = [(1.0, 1), (2.05, 1), (2.4, 2)]
    assert took_over_s(decided, 2.0, 1) == pytest.approx(0.4)
    assert took_over_s(decided, 3.0, 2) == float("inf")
