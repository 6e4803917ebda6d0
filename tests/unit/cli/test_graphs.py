"""Schedules of several jobs on the command line: applied from a file, shown, and one that failed retried."""

from pathlib import Path

from hascheduler.model.collection import Collection
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Replica

_GRAPH = """\
kind: Schedule
name: tick
trigger: {type: interval, every: 1s}
jobs:
- {ref: extract, definition: pull}
- {ref: load, definition: store, depends_on: [extract]}
"""


async def test_a_graph_is_applied_from_a_file_and_shown(replica: Replica, tmp_path: Path) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(_GRAPH)
    assert (await replica.done("apply", "-f", str(file), "--yes")).out.endswith("1 created\n")
    assert (await replica.done("apply", "-f", str(file))).out == "1 unchanged\n"
    shown = (await replica.done("schedule", "get", "tick")).out
    for part in ("extract  pull", "load     store after extract"):
        assert part in shown
    again = (await replica.done("schedule", "get", "tick", "--yaml")).out
    assert (await replica.done("apply", "-f", "-", input=again)).out == "1 unchanged\n"


async def test_what_failed_with_a_job_of_a_graph_is_retried_with_it(
    replica: Replica, world: World, tmp_path: Path
) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(_GRAPH)
    await replica.done("apply", "-f", str(file), "--yes")
    last = await world.fire(NOW + 1_000)
    first = f"{last}.extract"
    world.rewrite(Collection.JOBS, first, state="failed", error="it broke")
    world.rewrite(Collection.JOBS, last, state="failed", error=f"its dependency {first} failed")
    retried = await replica.done("job", "retry", first, "--with-dependents")
    assert retried.out.splitlines() == [f"{first} waits again", f"  {last} waits for it again"]
    assert (world.job(first)["state"], world.job(last)["state"]) == ("pending", "pending")
    assert world.job(last)["waits_for"] == [first]
