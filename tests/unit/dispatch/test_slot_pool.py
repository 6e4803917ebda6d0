"""Which processor takes the next job of a definition."""

from typing import Any

import pytest

from hascheduler.dispatch.capacity.slot_pool import SlotPool
from hascheduler.model.processor import ProcessorRef
from tests.unit.dispatch.nouns import make_processor


def pool_of(*processors: ProcessorRef, busy: dict[str, int] | None = None) -> SlotPool:
    pool = SlotPool()
    for processor in processors:
        pool.seen(processor)
    for processor_id, count in (busy or {}).items():
        for i in range(count):
            pool.occupy(f"{processor_id}-{i}", processor_id, ())
    return pool


def supports(*definitions: str) -> dict[str, Any]:
    return {"definitions": frozenset(definitions)}


@pytest.mark.parametrize(
    ("processors", "busy", "chosen"),
    [
        ([], {}, None),
        ([make_processor("a", **supports("other"))], {}, None),
        ([make_processor("a", **supports("log"))], {}, "a"),
        ([make_processor("a", **supports("log"))], {"a": 2}, None),
        ([make_processor("a", slots=0)], {}, None),
        ([make_processor("a", slots=-1)], {}, None),
        ([make_processor("a", draining=True)], {}, None),
        # The specialist before the generalist, and * last of all.
        ([make_processor("a", **supports("log", "x")), make_processor("b", **supports("log"))], {"b": 1}, "b"),
        ([make_processor("a"), make_processor("b", **supports("log", "x", "y"))], {"b": 1}, "b"),
        ([make_processor("a", **supports("*", "log")), make_processor("b", **supports("log", "x"))], {}, "b"),
        ([make_processor("a"), make_processor("b", **supports("log"))], {"b": 2}, "a"),
        # The least busy by share, not by count.
        ([make_processor("a", slots=2), make_processor("b", slots=10)], {"a": 1, "b": 4}, "b"),
        ([make_processor("a", slots=2), make_processor("b", slots=10)], {"a": 1, "b": 5}, "a"),
        # Then the smaller id.
        ([make_processor("b"), make_processor("a"), make_processor("c")], {}, "a"),
        ([make_processor("b"), make_processor("a"), make_processor("c")], {"a": 1}, "b"),
    ],
)
def test_the_slot_that_is_chosen(processors: list[ProcessorRef], busy: dict[str, int], chosen: str | None) -> None:
    assert pool_of(*processors, busy=busy).choose("log", ()) == chosen
    assert pool_of(*reversed(processors), busy=busy).choose("log", ()) == chosen


def test_a_lost_processor_comes_back_with_a_later_beat_and_its_slots_as_they_are() -> None:
    pool = pool_of(make_processor("a", slots=2, beat=5), busy={"a": 1})
    pool.lost("a", 5)
    assert not pool.is_live("a")
    assert pool.choose("log", ()) is None
    pool.seen(make_processor("a", slots=2, beat=5))
    assert not pool.is_live("a")
    pool.seen(make_processor("a", slots=2, beat=6))
    assert pool.is_live("a")
    assert pool.choose("log", ()) == "a"
    assert pool.occupants("a") == ["a-0"]


def test_news_of_a_later_beat_has_precedence_over_the_loss_of_an_earlier_one() -> None:
    pool = pool_of(make_processor("a", beat=6))
    pool.lost("a", 5)
    assert pool.is_live("a")


def test_a_job_holds_one_slot() -> None:
    pool = pool_of(make_processor("a"), make_processor("b"))
    for _ in range(2):
        pool.occupy("j", "a", ())
    assert (pool.occupants("a"), pool.free("log")) == (["j"], 3)
    pool.occupy("j", "b", ())
    assert (pool.occupants("a"), pool.occupants("b"), pool.free("log")) == ([], ["j"], 3)


def test_slots_are_held_at_processors_that_are_not_known_yet() -> None:
    pool = pool_of(busy={"a": 2})
    pool.seen(make_processor("a", slots=2))
    assert pool.choose("log", ()) is None
    pool.release("a-1")
    assert pool.choose("log", ()) == "a"
