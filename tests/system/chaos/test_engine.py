"""The engine, whole: with a bug planted in real processes a row goes red; the smoke shows that a sound one is green."""

from dataclasses import replace

import pytest

from tests.chaos.rows import ROWS
from tests.chaos.stage import open_servers
from tests.chaos.story import run_row
from tests.chaos.users import LoadPlan

# Few users, and not a thousand obligations: what is tried here is the engine.
ROW = replace(ROWS["leader-stops-at-fence"].in_short(), main=False, load=LoadPlan(schedules=12, submits_per_s=5))

pytestmark = [pytest.mark.timeout(240)]


async def test_a_bug_planted_in_the_real_processes_goes_red() -> None:
    async with open_servers() as servers:
        bug = "fence-skipped"
        result = await run_row(ROW, servers, servers.folder / bug, smoke=True, seed=1, bug=bug, say=print)
    assert result.violations["journal_fenced"]
    assert result.obligations > 100
    assert result.terms >= 3
