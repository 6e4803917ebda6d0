"""What the evidence is made of: versions from the oplog, runs from the handlers' file, gaps from the journal."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from hascheduler.model.collection import Collection
from tests.chaos.evidence import changed_by, decisions, dispatches, read_effects, terms, took_over_s, worst_gap_s
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
    # Who takes over decides in a later term.
    decided = [(1.0, 1), (2.05, 1), (2.4, 2)]
    assert took_over_s(decided, 2.0, 1) == pytest.approx(0.4)
    assert took_over_s(decided, 3.0, 2) == float("inf")
