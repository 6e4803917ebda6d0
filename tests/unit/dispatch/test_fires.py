"""Which nominal times are due."""

from hascheduler.dispatch.decisions import Fire, TimeOutcome
from hascheduler.dispatch.schedules.due_times import DueTimes
from hascheduler.schema.schedule import TriggerPeriod
from hascheduler.schema.trigger import Cron, Trigger
from tests.unit.dispatch.nouns import fire, make_schedule, wall


def fires_of(*spans_ms: int, schedule: str = "s") -> list[Fire]:
    return [fire(schedule, wall(span_ms)) for span_ms in spans_ms]


def take_due(fires: DueTimes, span_ms: int, limit: int = 10) -> list[TimeOutcome]:
    return [conclusion for of_one in fires.take_due(wall(span_ms), limit, lambda _: {}) for conclusion in of_one]


def test_forgotten_promises_are_due_again_from_the_cursor_that_was_seen() -> None:
    fires = DueTimes()
    fires.seen(make_schedule("s"))
    take_due(fires, 3_000)
    fires.seen(make_schedule("s", cursor_ms=wall(1_000)))
    fires.forget_promises()
    assert take_due(fires, 3_000) == fires_of(2_000, 3_000)


def test_a_trigger_that_was_broken_by_hand_never_fires_and_holds_up_no_other() -> None:
    broken = Trigger(Cron("nonsense"))
    fires = DueTimes()
    fires.seen(make_schedule("a", trigger=broken))
    fires.seen(make_schedule("b", past=(TriggerPeriod(broken, wall(1_500), wall(9_000)),)))
    fires.seen(make_schedule("s"))
    assert take_due(fires, 1_000) == fires_of(1_000)
    assert sorted(fires.unreadable) == ["a", "b"]
    fires.seen(make_schedule("a", rev=2, cursor_ms=wall(1_000)))
    fires.gone("b")
    assert fires.unreadable == {}
    assert take_due(fires, 2_000) == [*fires_of(2_000, schedule="a"), *fires_of(2_000)]


def test_a_promise_made_elsewhere_is_kept() -> None:
    fires = DueTimes()
    fires.seen(make_schedule("s"))
    fires.promise(fire("s", wall(2_000)), is_unseen=False)
    fires.promise(fire("s", wall(1_000)), is_unseen=False)
    fires.promise(fire("stranger", wall(2_000)), is_unseen=False)
    assert take_due(fires, 3_000) == fires_of(3_000)


def test_a_schedule_that_is_gone_fires_no_more_and_one_made_anew_begins_anew() -> None:
    fires = DueTimes()
    fires.seen(make_schedule("s"))
    take_due(fires, 5_000)
    fires.gone("s")
    assert fires.schedule("s") is None
    assert take_due(fires, 9_000) == []
    fires.forget_promises()
    fires.seen(make_schedule("s", cursor_ms=wall(2_500), created_at_ms=wall(2_500), since_ms=wall(2_500)))
    assert take_due(fires, 3_000) == fires_of(3_000)
