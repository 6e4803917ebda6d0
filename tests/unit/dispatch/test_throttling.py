"""Fires find room within the limits of their tenant, or wait for it, or are throttled; each time has one verdict."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.dispatch.decisions import (
    Decision,
    Fire,
    RecordVerdict,
    TimeOutcome,
    decode_decisions,
    encode_decisions,
)
from hascheduler.dispatch.schedules.fire_admission import FIRE_RATE, MAX_PENDING, FireAllowance
from hascheduler.dispatch.schedules.time_outcomes import decide_due_times
from hascheduler.mirror.changes import ScheduleSeen, TenantSeen
from hascheduler.model.job import fire_job_id
from hascheduler.model.verdict import NOTHING_DECIDED, Verdict
from hascheduler.schema.definition import RateLimit
from hascheduler.schema.schedule import CatchUp, SchedulePolicy, ScheduleRef
from hascheduler.schema.tenant import Tenant
from tests.tiers import examples
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.nouns import make_schedule, wall
from tests.unit.dispatch.scene import Scene
from tests.unit.dispatch.world import World

EVERY_MS = 100


def fast(name: str, **more: object) -> ScheduleRef:
    return make_schedule(name, every_ms=EVERY_MS, **more)


def told(decisions: Sequence[Decision | TimeOutcome]) -> Counter[Verdict]:
    """How many nominal times got which verdict."""
    counts: Counter[Verdict] = Counter()
    for decision in decisions:
        if isinstance(decision, Fire):
            counts[Verdict.FIRED] += 1
        elif isinstance(decision, RecordVerdict):
            counts[decision.run.verdict] += decision.run.count
    return counts


def run(scene: Scene, until_ms: int, begin_ms: int = 0) -> list[Decision]:
    """What is decided by then, each once, however often it is decided again."""
    steps = [scene.at(at_ms) for at_ms in range(begin_ms, until_ms + 1, 50)]
    return list(dict.fromkeys(decision for step in steps for decision in step.decisions))


def limited(*names: str, **limits: object) -> Scene:
    tenant = Tenant(name="default", rev=1, **limits)  # type: ignore[arg-type]
    return Scene(TenantSeen(tenant), *(ScheduleSeen(fast(name)) for name in names))


def test_a_rate_of_fires_is_a_bucket_that_all_schedules_of_the_tenant_take_from() -> None:
    scene = limited("a", "b", fire_rate=RateLimit(count=2, per_ms=1_000))
    decisions = run(scene, 10_000)
    # Full at first, then two a second.
    assert 2 + 18 <= told(decisions)[Verdict.FIRED] <= 2 + 20
    assert {each.run.because_of for each in decisions if isinstance(each, RecordVerdict)} == {FIRE_RATE}


def test_0_2_0_can_carry_out_a_journal_with_throttled_times() -> None:
    """It knows six verdicts and six counts, and refuses whatever has another form."""
    found = decide_due_times(
        make_schedule("s"),
        wall(0),
        NOTHING_DECIDED,
        wall(5_000),
        live={},
        limit=9,
        allowance=FireAllowance(0, FIRE_RATE),
    )
    [row] = encode_decisions(tuple(found))
    assert row[2] == "missed"
    assert len(row) == 9
    assert len(row[8]) == 6
    [read] = decode_decisions([row])
    assert isinstance(read, RecordVerdict)
    assert (read.run.verdict, read.run.because_of, read.run.count) == (Verdict.THROTTLED, FIRE_RATE, 4)


@pytest.mark.parametrize("catch_up", CatchUp)
@given(data=st.data())
def test_it_equals_what_deciding_one_time_after_the_other_would_give(catch_up: CatchUp, data: st.DataObject) -> None:
    """A slow and obvious reckoning, of the times that are within the grace."""
    due = data.draw(st.integers(1, 40))
    left = data.draw(st.integers(0, 45))
    made = data.draw(st.sets(st.integers(1, due), max_size=3))
    live = {fire_job_id("s", wall(1_000 * n)): None for n in sorted(made)}
    policy = SchedulePolicy(catch_up=catch_up, grace_ms=60_000)
    found = decide_due_times(
        make_schedule("s", policy=policy), wall(0), NOTHING_DECIDED, wall(1_000 * due), live=live, limit=99,
        allowance=FireAllowance(left, MAX_PENDING),
    )  # fmt: skip
    verdicts: dict[int, str] = {}
    for n in range(1, due + 1):
        if n in made:
            verdicts[n] = "fired"
        elif left:
            verdicts[n], left = "fired", left - 1
        elif n < due:
            verdicts[n] = "throttled"
    got: dict[int, str] = {}
    for each in found:
        first_ms = each.run.first_ms if isinstance(each, RecordVerdict) else each.nominal_ms
        for at_ms in range(first_ms, each.nominal_ms + 1, 1_000):
            assert (at_ms - wall(0)) // 1_000 not in got
            got[(at_ms - wall(0)) // 1_000] = each.run.verdict.value if isinstance(each, RecordVerdict) else "fired"
    assert got == verdicts


@given(st.integers(0, 2**32))
@settings(max_examples=examples(25))
def test_limits_that_come_and_go_leave_no_time_without_a_verdict(seed: int) -> None:
    World(Seeded(seed), limited=True).live(250)
