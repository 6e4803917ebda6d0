"""What a schedule has to decide next is about the first of its undecided times, asked with or without a period."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.schedules.trigger_periods import next_decision_ms, undecided
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import FireCounts
from hascheduler.schema.schedule import ScheduleRef, TriggerPeriod
from hascheduler.schema.trigger import Cron, Interval, Once, Trigger, Window
from hascheduler.triggers import due_ms
from tests.tiers import examples
from tests.unit.dispatch.nouns import make_schedule

INSTANTS = st.integers(0, 20_000).map(WallMs) | st.just(LATEST_MS)
PATTERNS = (
    st.builds(Interval, st.integers(100, 5_000), INSTANTS) | st.builds(Once, INSTANTS) | st.just(Cron("* * * * * */7"))
)
JITTERS, BOUNDS, MAX_FIRES = st.sampled_from([0, 90]), st.none() | INSTANTS, st.none() | st.integers(1, 2)
WINDOWS = st.tuples(INSTANTS, st.integers(1, 9_000)).map(lambda at: (Window(at[0], WallMs(at[0] + at[1])),))
PLAIN = st.builds(Trigger, PATTERNS, JITTERS, BOUNDS, BOUNDS, MAX_FIRES)
TRIGGERS = PLAIN | st.builds(Trigger, PATTERNS, JITTERS, BOUNDS, BOUNDS, MAX_FIRES, WINDOWS)
PAST = st.builds(TriggerPeriod, TRIGGERS, INSTANTS, INSTANTS, st.booleans()).map(lambda period: (period,))
SCHEDULES = st.builds(make_schedule, st.just("s"), trigger=PLAIN, since_ms=INSTANTS) | st.builds(
    make_schedule, st.just("s"), trigger=TRIGGERS, since_ms=INSTANTS, paused_at_ms=BOUNDS, past=st.just(()) | PAST
)


def first_of_all(schedule: ScheduleRef, cursor_ms: WallMs, tally: FireCounts) -> int | None:
    for times in undecided(schedule, cursor_ms, LATEST_MS):
        first_ms = None if times.is_exhausted(tally) else times.first()
        if first_ms is not None:
            is_out = times.verdict is not None
            return times.through_ms + 1 if is_out else due_ms(schedule.name, times.trigger, first_ms)
    return None


@given(SCHEDULES, INSTANTS, st.integers(0, 2).map(FireCounts))
@settings(max_examples=examples(400))
def test_it_is_about_the_first_undecided_time(schedule: ScheduleRef, cursor_ms: WallMs, tally: FireCounts) -> None:
    assert next_decision_ms(schedule, cursor_ms, tally) == first_of_all(schedule, cursor_ms, tally)
