"""``hascheduler forecast``: bars, the peaks in words, and JSON."""

from typing import Any

import pytest

from hascheduler.dispatch.forecast.inputs import OpenSlots
from hascheduler.model.trigger import Cron, Trigger
from tests.factories import TEMPLATE, make_schedule
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica

COST_MS = 5 * 60_000


async def nightly(world: World, count: int) -> None:
    world.view.slots = (OpenSlots(frozenset({"*"}), 16),)
    for number in range(count):
        name = f"nightly-{number:02}"
        await world.schedules.create(make_schedule(name, trigger=Trigger(Cron("0 3 * * *")), now=NOW))
        world.view.learned[TEMPLATE.definition, TEMPLATE.target_of(name)] = COST_MS


async def test_bars_and_peaks(replica: Replica, world: World) -> None:
    await nightly(world, 41)
    out = (await replica.done("forecast", "--utc", "--ahead", "6h", "--bucket", "1h", COLUMNS="100")).out
    lines = out.splitlines()
    assert lines[0].startswith("41 fires ahead, 16 slots")
    (bar,) = [line for line in lines if line.startswith("Tue 1 Jan 03:00")]
    assert bar.split()[:6] == ["Tue", "1", "Jan", "03:00", "41", "41"]
    assert bar.count("█") == -(-16 * (100 - 46) // 41)
    assert bar.count("█") + bar.count("░") == 100 - 46
    assert bar.endswith("10m")
    assert "41 jobs for 16 slots, about 10 minutes" in out
    assert "36 of others" in out
    assert max(map(len, lines)) <= 100


async def test_where_nothing_waits_it_says_so(replica: Replica, world: World) -> None:
    assert "Nothing is going to start." in (await replica.done("forecast")).out
    await nightly(world, 1)
    assert "No job will have to wait for longer than a minute." in (await replica.done("forecast")).out


async def test_json_is_the_answer_as_it_is(replica: Replica, world: World) -> None:
    await nightly(world, 2)
    found: Any = (await replica.done("forecast", "--json", "--bucket", "1h", "--lane", "default")).json
    assert (found["slots"], len(found["buckets"]), found["peaks"]) == (16, 24, [])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--ahead", "soon"], "--ahead: 'soon' is not a duration"),
        (["--bucket", "90s"], "bucket"),
        (["--json", "--watch"], "--watch: can't be had with --json"),
    ],
)
async def test_what_makes_no_sense_is_refused(replica: Replica, options: list[str], expected: str) -> None:
    ended = await replica.run("forecast", *options)
    assert ended.status == 2
    assert expected in ended.err
