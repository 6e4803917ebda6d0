"""A process stops or dies right before or right after one of its writes, at each of them in turn."""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from hascheduler.model.job import JobState
from tests.chaos.cluster import Life
from tests.chaos.row import BRIEF_LEASE, SHORT_LEASE, Row
from tests.chaos.stage import Kill, Stage
from tests.chaos.strings import LEADER_WRITES, PROCESSOR_WRITES, Ending, Failpoint, When
from tests.chaos.users import LoadPlan
from tests.chaos.waiting import eventually

_PASSED_BY_S = 60.0
_STOPPED_S = 6.5
"""Longer than the leader waits for a processor's heartbeat."""


def _some(writes: Sequence[str], ending: Ending, stage: Stage, smoke: int) -> Sequence[Failpoint]:
    """Before and after each of those writes; by chance so many of them in the smoke."""
    failpoints = [Failpoint(write, when, ending) for write, when in product(writes, When)]
    return stage.chance.sample(failpoints, smoke) if stage.smoke else failpoints


async def _goes_off(stage: Stage, life: Life, failpoint: Failpoint) -> None:
    """Arm it, and wait until the process has stopped or died by it."""
    stage.cluster.arm(life, failpoint)

    async def find() -> bool:
        return not life.up or (not stage.cluster.armed(life) and _state(life) == "T")

    await eventually(find, f"{life.name} passes by {failpoint}", _PASSED_BY_S)
    if life.up:
        stage.cluster.frozen(life)
    else:
        stage.cluster.died(life)


def _state(life: Life) -> str:
    """As the kernel has it: "T" is stopped. Empty where the process is gone, which may be between any two looks."""
    try:
        stat = Path(f"/proc/{life.child.pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]


async def _leader_at(stage: Stage, *, ending: Ending, smoke: int) -> None:
    await _leader_passes(stage, _some(LEADER_WRITES, ending, stage, smoke))


async def _leader_passes(stage: Stage, failpoints: Sequence[Failpoint], *, sleeps_on_s: float = 1.5) -> None:
    for failpoint in failpoints:
        leader, term = await stage.leader()
        await _goes_off(stage, leader, failpoint)
        at_s = stage.now_s()
        await stage.leader(after_term=term)
        if leader.up:
            await asyncio.sleep(stage.chance.uniform(0.0, sleeps_on_s))
            stage.cluster.thaw(leader)
            await leader.child.ready()
        else:
            stage.kills.append(Kill(at_s, term))
            await stage.restart(leader.name)


async def _processor_at(stage: Stage, *, ending: Ending, smoke: int) -> None:
    for failpoint in _some(PROCESSOR_WRITES, ending, stage, smoke):
        life = stage.any_processor()
        await _goes_off(stage, life, failpoint)
        if life.up:
            await asyncio.sleep(_STOPPED_S)
            stage.cluster.thaw(life)
        else:
            await stage.restart(life.name)
        await asyncio.sleep(0.5)
    await stage.quiet(6, 6)


async def _processor_stops_at_finish(stage: Stage) -> None:
    """It wakes up while another is at work on what it had just done, and tells of it."""
    jobs = stage.database["jobs"]
    for _ in range(stage.times(smoke=4, full=8)):
        life = stage.any_processor()
        await _goes_off(stage, life, Failpoint("work.finish", When.BEFORE, Ending.STOP))
        id = stage.cluster.went_off_about(life)
        elsewhere = {"_id": id, "state": JobState.RUNNING.value, "processor": {"$not": {"$regex": f"^{life.name}\\."}}}

        async def find(elsewhere: Any = elsewhere) -> bool:
            return await jobs.find_one(elsewhere) is not None

        await eventually(find, f"somebody else runs {id}")
        stage.cluster.thaw(life)
        await asyncio.sleep(3)


async def _leader_stops_before_the_journal(stage: Stage) -> None:
    """The very moment that the fence is for: it wakes up as another leads, and sends what it was about to write."""
    again = [Failpoint("journal.insert", When.BEFORE, Ending.STOP)]
    await _leader_passes(stage, again * stage.times(smoke=3, full=8), sleeps_on_s=0.2)


ROWS = (
    Row(
        "leader-dies-at-writes",
        "the leader dies before and after each of its writes",
        partial(_leader_at, ending=Ending.DIE, smoke=6),
        settings=SHORT_LEASE,
        gap_s=4.0,
    ),
    Row(
        "leader-stops-at-writes",
        "the leader stalls before and after each of its writes",
        partial(_leader_at, ending=Ending.STOP, smoke=2),
        settings=SHORT_LEASE,
        gap_s=10.0,
    ),
    Row(
        "leader-stops-at-fence",
        "the leader stalls right before a journal write, and wakes when another leads",
        _leader_stops_before_the_journal,
        smoke=True,
        settings=BRIEF_LEASE,
        gap_s=8.0,
    ),
    Row(
        "processor-dies-at-writes",
        "a processor dies before and after each of its writes",
        partial(_processor_at, ending=Ending.DIE, smoke=4),
    ),
    Row(
        "processor-stops-at-writes",
        "a processor stalls before and after each of its writes, past its deadline",
        partial(_processor_at, ending=Ending.STOP, smoke=2),
    ),
    Row(
        "processor-stops-at-finish",
        "a processor stalls right before it reports, and wakes when another has the job",
        _processor_stops_at_finish,
        main=False,
        # Jobs that take a second or so, so that another is still at work on one when it wakes up.
        load=LoadPlan(schedules=10, submits_per_s=2, definitions=("slow",), scheduled="slow"),
    ),
)
