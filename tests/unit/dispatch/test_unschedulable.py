"""Which waiting jobs no processor could ever run, and how many of the others could run by now."""

import pytest

from hascheduler.mirror.changes import JobGone, ProcessorGone, TenantGone, TenantSeen
from hascheduler.schema.tenant import Tenant
from tests.tiers import in_tier
from tests.unit.dispatch.core_vs_oracle import CoreVsOracle
from tests.unit.dispatch.nouns import make_job, wall
from tests.unit.dispatch.scene import Scene, jobs, processors


@pytest.mark.parametrize("part", range(5))
def test_they_are_those_that_the_oracle_finds_no_processor_for(part: int) -> None:
    for seed in range(30_000 + part * 20, 30_000 + part * 20 + in_tier(check=4, test=20)):
        rivals = CoreVsOracle(seed)
        for step in range(40):
            rivals.step()
            oracle = rivals.oracle
            due = [job for job in oracle.waiting.values() if (job.not_before_ms or 0) <= rivals.now]
            expected = sorted(job.id for job in due if not oracle.could_run(job))
            assert rivals.core.unschedulable() == expected, f"Rivals({seed}), step {step}"
            # Those that a processor takes, though it lacks a resource for them, are runnable, and unschedulable too.
            assert len(due) - len(expected) <= rivals.core.runnable <= len(due), f"Rivals({seed}), step {step}"


def test_jobs_that_begin_later_wait_for_others_or_have_no_processor_are_not_runnable() -> None:
    scene = Scene(*processors("p", definitions=frozenset({"x"}), slots=1))
    other = make_job("other", definition="y")
    scene.at(0, *jobs(make_job("due", definition="x"), make_job("later", definition="x", not_before_ms=wall(5)), other))
    scene.at(1, *jobs(make_job("next", definition="x"), make_job("third", definition="x", waits_for=("other",))))
    # One is dispatched.
    assert (scene.core.pending(), scene.core.runnable) == (5, 1)
    scene.at(5)
    assert scene.core.runnable == 2
    scene.at(6, JobGone("next"))
    assert scene.core.runnable == 1
    scene.at(7, ProcessorGone("p"))
    assert scene.core.runnable == 0


def test_a_job_stays_in_the_list_when_its_tenant_gets_a_quota_and_when_it_loses_it() -> None:
    scene = Scene(*processors("p", definitions=frozenset({"x"})))
    scene.at(0, *jobs(make_job("a", definition="y", tenant="T"), make_job("b", definition="y", tenant="U")))
    assert scene.core.unschedulable() == ["a", "b"]
    scene.at(1, TenantSeen(Tenant(name="T", rev=1, max_running=5)))
    assert scene.core.unschedulable() == ["a", "b"]
    scene.at(2, TenantGone("T"))
    assert scene.core.unschedulable() == ["a", "b"]
