"""The engine, whole: a sound system comes out green, with evidence; with a bug planted in its processes it goes red."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.chaos.rows import ROWS
from tests.chaos.stage import Servers, open_servers
from tests.chaos.story import Result, tell
from tests.chaos.users import LoadPlan

# Few users, and not a thousand obligations: what is tried here is the engine.
ROW = replace(ROWS["leader-stops-at-fence"].in_short(), main=False, load=LoadPlan(schedules=12, submits_per_s=5))

pytestmark = [pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
async def servers() -> AsyncIterator[Servers]:
    async with open_servers() as started:
        yield started


async def told(servers: Servers, bug: str = "") -> Result:
    folder = servers.folder / (bug or "sound")
    return await tell(ROW, servers, folder, smoke=True, seed=1, bug=bug, say=print)


async def test_a_sound_system_is_green_and_there_is_evidence_of_it(servers: Servers) -> None:
    result = await told(servers)
    assert result.green, result.violations
    assert (result.lost, result.doubled, result.broken) == (0, 0, 0)
    assert result.obligations > 100
    assert result.effects >= result.obligations - 50
    assert result.terms >= 3


async def test_a_bug_planted_in_the_real_processes_goes_red(servers: Servers) -> None:
    result = await told(servers, "fence-skipped")
    assert result.violations["journal_fenced"]
