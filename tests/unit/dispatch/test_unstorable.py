"""A fire whose job no database can hold: its promise ends, its slot is free again, and the next time is decided."""

from hascheduler.dispatch.decisions import Dispatch, Fire, Settlement
from hascheduler.mirror.changes import JobGone, ScheduleSeen
from tests.unit.dispatch.nouns import make_schedule, wall
from tests.unit.dispatch.scene import Scene, processors, settled


def test_its_job_is_forgotten_and_the_next_time_fires() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    [fire] = first.decisions
    assert isinstance(fire, Fire)
    assert scene.core.pending() == 1
    step = scene.at(1_010, *settled(first.decisions, Settlement.REFUSED))
    assert scene.core.pending() == 0
    assert step.settled == ()
    # The stream shows the cursor, and there is nothing else to wait for.
    step = scene.at(1_020, ScheduleSeen(make_schedule("s", cursor_ms=fire.nominal_ms)))
    assert step.settled == (fire,)
    assert [each.nominal_ms for each in scene.at(2_000).decisions if isinstance(each, Fire)] == [wall(2_000)]


def test_the_next_time_does_not_wait_for_the_stream() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    scene.at(1_010, *settled(first.decisions, Settlement.REFUSED))
    [fire] = scene.at(2_000).decisions
    assert isinstance(fire, Fire)
    assert (fire.nominal_ms, fire.basis.cursor_ms) == (wall(2_000), wall(1_000))


def test_a_slot_that_was_promised_to_it_is_free_when_the_reading_has_told() -> None:
    scene = Scene(*processors("p", slots=1), ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    fire, dispatch = first.decisions
    assert isinstance(fire, Fire)
    assert isinstance(dispatch, Dispatch)
    step = scene.at(1_010, *settled([fire], Settlement.REFUSED), *settled([dispatch], Settlement.LOST))
    assert step.refetch == (dispatch.job_id,)
    scene.at(1_020, JobGone(dispatch.job_id))
    assert scene.core.occupied("p") == 0


def test_one_that_was_decided_again_is_over_when_it_is_refused_with_a_majority() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s", cursor_ms=wall(0))))
    first = scene.at(1_000)
    scene.at(1_010, *settled(first.decisions, Settlement.UNKNOWN))
    again = scene.at(100_000)
    assert again.retried
    step = scene.at(100_010, *settled(first.decisions, Settlement.REFUSED))
    assert step.settled == first.decisions
