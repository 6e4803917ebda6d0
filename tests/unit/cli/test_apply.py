"""``hascheduler apply``: it replaces exactly what it has shown; what it prints is in the golden transcripts."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hascheduler.cli.input.manifests import read_manifests
from hascheduler.cli.replica import replica as replica_at
from hascheduler.cli.resources import named
from hascheduler.cli.resources.apply import carry_out, make_plan
from hascheduler.errors import Conflict
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

DOCUMENTS: Mapping[Collection, str] = {
    Collection.DEFINITIONS: "kind: Definition\nname: x\nmax_concurrency: 2\n",
    Collection.LANES: "kind: Lane\nname: x\nweight: 2\npolicy: fair\npromote_after: 90\n",
    Collection.CALENDARS: "kind: Calendar\nname: x\nweekdays: [mon]\nexclude: [12-24, 2030-12-31]\n",
    Collection.TENANTS: "kind: Tenant\nname: x\nmax_running: 2\n",
    Collection.SCHEDULES: (
        "kind: Schedule\nname: x\ntrigger: {type: interval, every: 1h}\npaused: true\n"
        "job: {definition: log, payload: {day: 2030-02-01}}\n"
    ),
}


def want(file: Path, *documents: str) -> None:
    file.write_text("---\n".join(documents))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "wanted.yaml"


async def test_what_is_shown_as_yaml_can_be_applied(replica: Replica, world: World, file: Path) -> None:
    want(file, *DOCUMENTS.values())
    await replica.done("apply", "-f", str(file), "--yes")
    kinds = [collection.value.removesuffix("s") for collection in DOCUMENTS]
    shown = "---\n".join([(await replica.done(kind, "get", "x", "--yaml")).out for kind in kinds])
    assert (await replica.done("apply", "-f", "-", input=shown)).out == "5 unchanged\n"
    before = world.schedule("x")
    await replica.done("schedule", "delete", "x", "--yes")
    await replica.done("apply", "-f", "-", "--yes", input=shown)
    assert world.schedule("x") == before


@pytest.mark.parametrize("name", ["tick", "nightly", "repack"])
async def test_a_concurrent_change_is_not_replaced(
    replica: Replica, url: str, world: World, file: Path, name: str
) -> None:
    repack = "kind: Definition\nname: repack\nmax_concurrency: {}\n"
    schedule = "kind: Schedule\nname: {}\ntrigger: {{type: interval, every: {}s}}\njob: {{definition: log}}\n"
    want(file, repack.format(2), schedule.format("tick", 1), schedule.format("nightly", 1))
    await replica.done("apply", "-f", str(file), "--owner", "team-a", "--yes")
    want(file, repack.format(3), schedule.format("tick", 2))  # nightly goes

    def planned() -> Any:
        with replica_at(url) as scheduler:
            return make_plan(scheduler, read_manifests([str(file)], WallMs(0), "team-a"), prune=True)

    steps = {step.name: step for step in await asyncio.to_thread(planned)}
    kind = "definition" if name == "repack" else "schedule"
    edit = ("--max-concurrency", "9") if kind == "definition" else ("--label", "by=hand")
    await replica.done(kind, "edit", name, *edit)
    before = world.everything()

    def do() -> None:
        with replica_at(url) as scheduler:
            carry_out(scheduler, steps[name])

    with pytest.raises(Conflict):
        await asyncio.to_thread(do)
    assert world.everything() == before


async def test_what_comes_to_use_it_after_the_plan_is_noticed(
    replica: Replica, monkeypatch: pytest.MonkeyPatch, world: World, file: Path
) -> None:
    want(file, "kind: Definition\nname: repack\n", "kind: Lane\nname: bulk\n")
    asked = ("apply", "-f", str(file), "--owner", "team-a", "--prune", "--yes")
    await replica.done(*asked)
    looks: list[Any] = []

    def blind_at_first(*asked: Any) -> Any:
        looks.append(asked)
        return {} if len(looks) == 1 else named.uses(*asked)

    monkeypatch.setattr("hascheduler.cli.resources.apply.uses", blind_at_first)
    await replica.done("schedule", "add", "late", "--every", "1h", "--definition", "repack")
    want(file, "{kind: Apply, owner: team-a}")
    ended = await replica.run("apply", "-f", str(file), "--prune", "--yes")
    assert (ended.status, ended.err) == (1, "hascheduler: definition repack: schedule late still uses it\n")
    assert len(looks) == 2, "one look at the plan, and one before the first noun goes"
    assert [document["_id"] for document in world.everything()["definitions"]] == ["repack"]
