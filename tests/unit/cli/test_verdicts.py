"""``hascheduler verdicts`` against the real API."""

from typing import Any

from hascheduler.clock import SystemClock
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica


async def test_times_of_all_schedules_that_did_not_fire_are_shown(replica: Replica, world: World) -> None:
    assert (await replica.done("verdicts")).out == "There are no such times.\n"
    for name in ("a", "b"):
        await replica.done("schedule", "add", name, "--every", "1s", "--definition", "log", "--label", f"team={name}")
    now = SystemClock().wall_ms()
    world.clock.now = WallMs(now - 7_200_000)
    await world.pass_over(Verdict.MISSED, NOW + 1_000, NOW + 3_000, count=3, name="a")
    world.clock.now = now
    await world.pass_over(Verdict.SKIPPED, NOW + 2_000, because_of="fire:b:1", name="b")
    lines = (await replica.done("verdicts", COLUMNS="120")).out.splitlines()
    [of_b] = [line for line in lines if line.split()[:1] == ["b"]]
    [of_a] = [line for line in lines if line.split()[:1] == ["a"]]
    assert lines.index(of_b) < lines.index(of_a)
    assert "in the way: fire:b:1" in of_b
    assert "missed × 3" in of_a

    async def listed(*options: str) -> list[str]:
        answer: Any = (await replica.done("verdicts", *options, "--json")).json
        return [item["schedule"] for item in answer["items"]]

    assert await listed("--verdict", "missed", "--verdict", "skipped") == ["b", "a"]
    assert await listed("--verdict", "missed") == ["a"]
    assert await listed("--since", "1h") == ["b"]
    assert await listed("--text", "A") == ["a"]
    assert await listed("--label", "team=a", "--until", "1h") == ["a"]
    refused = await replica.run("verdicts", "--verdict", "fired")
    assert (refused.status, "is in /v1/jobs" in refused.err) == (2, True)
