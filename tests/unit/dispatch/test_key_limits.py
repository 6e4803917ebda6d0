"""Limits per key: so many jobs of one value at once, and so fast, and no other job waits for them."""

import pytest

from hascheduler.dispatch.capacity import rate_limits
from hascheduler.dispatch.capacity.rate_limits import KeyRates, groups_of
from hascheduler.dispatch.decisions import Dispatch, Fire
from hascheduler.dispatch.explanation import BlockReason
from hascheduler.dispatch.inputs import Step, TermBegan
from hascheduler.dispatch.rules import Rules
from hascheduler.mirror.changes import DefinitionSeen, JobGone, JobSeen, ScheduleSeen
from hascheduler.model.documents.fired_job import fired_job
from hascheduler.model.job import JobRef, JobState
from hascheduler.schema.definition import Definition, KeyLimit, RateLimit
from tests.unit.dispatch.nouns import make_job, make_schedule, running, wall
from tests.unit.dispatch.scene import Scene, echo, jobs, processors

KEY = "payload.customer"


def of(customer: str, id: str, **more: object) -> JobRef:
    return make_job(id, limit_keys=((KEY, customer),), **more)


def defined(max_concurrency: int | None = None, rate: RateLimit | None = None) -> DefinitionSeen:
    return DefinitionSeen(
        Definition(name="log", key_limits=(KeyLimit(key=KEY, max_concurrency=max_concurrency, rate_limit=rate),))
    )


def started(step: Step) -> list[str]:
    return [each.job_id for each in step.decisions if isinstance(each, Dispatch)]


def test_jobs_that_were_made_before_the_limit_neither_wait_nor_count() -> None:
    scene = Scene(defined(1), *processors("p", slots=9))
    assert sorted(started(scene.at(0, *jobs(make_job("a"), make_job("b"), of("acme", "c"))))) == ["a", "b", "c"]


def test_a_job_counts_that_began_before_the_limit_was_set() -> None:
    scene = Scene(*processors("p", slots=9), JobSeen(running("a", "p", limit_keys=((KEY, "acme"),))), defined(1))
    assert started(scene.at(0, *jobs(of("acme", "b")))) == []
    assert started(scene.at(1, defined(2))) == ["b"]


def test_so_fast_and_the_core_wakes_for_the_next() -> None:
    scene = Scene(defined(rate=RateLimit(count=2, per_ms=10_000)), *processors("p", slots=9))
    waiting = [*(of("acme", f"a{n}", sequence=n) for n in range(4)), of("other", "b", sequence=9)]
    step = scene.at(0, *jobs(*waiting))
    assert started(step) == ["a0", "a1", "b"]
    ended = [JobGone(job_id, JobState.SUCCEEDED) for job_id in started(step)]
    assert scene.at(1, *echo(step, *waiting), *ended).wake_at_ms == wall(5_000)
    assert started(scene.at(4_999)) == []
    assert started(scene.at(5_000)) == ["a2"]


def test_why_says_who_runs_and_when_the_next_may_go() -> None:
    scene = Scene(defined(1, RateLimit(count=1, per_ms=60_000)), *processors("p", slots=9))
    scene.at(0, *jobs(of("acme", "a"), of("acme", "b")))
    found = scene.why("b", 10)
    running, rate = found.blocks
    assert {running.rule, rate.rule} == {BlockReason.KEY}
    assert running.because == "1 of at most 1 jobs of 'log' with payload.customer='acme' run: 'a'"
    assert running.numbers == {"key": KEY, "value": "acme", "running": 1, "cap": 1, "holders": ["a"]}
    assert rate.because == "'log' with payload.customer='acme' is limited to 1 in 60 s"
    assert rate.until_ms == wall(60_000)
    nothing = Scene(defined(1), *processors("p", slots=9))
    nothing.at(0, *jobs(of("", "a"), of("", "b")))
    found = nothing.why("b", 0)
    assert "jobs of 'log' with no value at payload.customer run" in found.blocks[0].because


def test_a_fire_carries_the_keys_and_its_job_waits_until_its_values_are_read() -> None:
    scene = Scene(
        defined(1),
        ScheduleSeen(make_schedule("s")),
        *processors("p"),
        JobSeen(running("a", "p", limit_keys=((KEY, "acme"),))),
    )
    step = scene.at(1_000)
    [fire] = step.decisions
    assert isinstance(fire, Fire)
    assert fire.keyed_by == (KEY,)
    found = scene.why(fire.job_id, 1_000)
    assert [block.rule for block in found.blocks] == [BlockReason.KEY]
    shown = make_job(
        fire.job_id, limit_keys=((KEY, "other"),), schedule_created_at_ms=wall(0), submitted_at_ms=wall(1_000)
    )
    assert started(scene.at(1_001, JobSeen(shown))) == [fire.job_id]


def test_a_fire_of_a_definition_without_keys_is_dispatched_at_once() -> None:
    scene = Scene(ScheduleSeen(make_schedule("s")), *processors("p"))
    assert started(scene.at(1_000)) == ["fire:s:" + str(wall(1_000))]


@pytest.mark.parametrize(("read", "goes"), [("acme", False), ("other", True)])
def test_after_a_takeover_a_job_that_is_not_read_yet_counts_for_every_value(read: str, goes: bool) -> None:
    schedule = make_schedule("s")
    fire = Fire("s", wall(1_000), schedule.basis_at(wall(0)), keyed_by=(KEY,))
    scene = Scene(defined(1), ScheduleSeen(schedule), *processors("p", slots=9), *jobs(of("acme", "b")), leading=False)
    first = scene.at(1_100, TermBegan(2, (fire, Dispatch(fire.job_id, 1, "p"))))
    assert fire.job_id in first.refetch
    assert started(first) == []
    found = scene.why("b", 1_100)
    assert [block.rule for block in found.blocks] == [BlockReason.KEY]
    shown = running(fire.job_id, "p", limit_keys=((KEY, read),), schedule_created_at_ms=wall(0))
    assert started(scene.at(1_200, JobSeen(shown))) == (["b"] if goes else [])


def test_a_fired_job_is_expected_without_values_where_it_has_no_limits() -> None:
    assert fired_job(make_schedule("s"), wall(1_000)).limit_keys == ()


def test_full_buckets_are_forgotten_and_others_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "BUCKETS_MAX", 2_000)
    rules = Rules()
    rules.definitions["log"] = Definition(
        name="log", key_limits=(KeyLimit(key=KEY, rate_limit=RateLimit(count=1, per_ms=1_000)),)
    )
    rates = KeyRates(rules)
    for n in range(20_000):
        rates.spend(of(f"c{n}", f"j{n}"), n * 10)
        rates.advance(n * 10)
        assert len(rates._buckets) <= 2_000
    lifted = []
    for n in range(20_000):
        rates.spend(of(f"d{n}", f"j{n}"), 10**9)
        lifted += rates.advance(10**9)
    assert len(rates._buckets) <= 2_000 + 1_024 + 1
    assert len(rates._dry_until_ms) == len(rates._buckets)
    [newest] = groups_of(of("d19999", "j"))
    assert rates.dry_until(newest) == 10**9 + 1_000
    assert len(lifted) + len(rates._buckets) >= 20_000  # what is forgotten may go again, and is told
