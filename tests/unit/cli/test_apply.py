"""``hascheduler apply`` replaces what it has shown and nothing else; remedies mend what texts name them for."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hascheduler.check.documents import decode_or_finding
from hascheduler.check.finding import Finding
from hascheduler.cli.commands import COMMANDS
from hascheduler.cli.environment import access
from hascheduler.cli.input.manifests import read_manifests
from hascheduler.cli.replica import replica as replica_at
from hascheduler.cli.resources import named
from hascheduler.cli.resources.apply import carry_out, make_plan
from hascheduler.errors import Conflict
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.pause import EVERYTHING
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
        with replica_at(access(url)) as scheduler:
            return make_plan(scheduler, read_manifests([str(file)], WallMs(0), "team-a"), prune=True)

    steps = {step.name: step for step in await asyncio.to_thread(planned)}
    kind = "definition" if name == "repack" else "schedule"
    edit = ("--max-concurrency", "9") if kind == "definition" else ("--label", "by=hand")
    await replica.done(kind, "edit", name, *edit)
    before = world.everything()

    def do() -> None:
        with replica_at(access(url)) as scheduler:
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


# Remedies

ROOT = Path(__file__).parents[3]
HINTS = (*ROOT.glob("hascheduler/check/*.py"), *ROOT.glob("hascheduler/mongo/check/*.py"),
         ROOT / "hascheduler/dispatch/explainer.py", ROOT / "hascheduler/mongo/unreachable.py",
         ROOT / "hascheduler/api/routing/route_rules.py")  # fmt: skip
RUNBOOKS = ROOT / "k8s/monitoring/rules.yaml"

BROKEN: Mapping[Collection, Mapping[str, Any]] = {
    Collection.DEFINITIONS: {"max_concurrency": "many"},
    Collection.LANES: {"weight": "heavy"},
    Collection.CALENDARS: {"include": 7},
    Collection.TENANTS: {"max_running": "few"},
    Collection.SCHEDULES: {"trigger": {"type": "sunrise"}},
}


async def apply(replica: Replica, world: World, path: Path) -> None:
    for collection, broken in BROKEN.items():
        want(path, DOCUMENTS[collection])
        await replica.done("apply", "-f", str(path), "--yes")
        right = world.stored(collection, "x")
        world.rewrite(collection, "x", **broken)
        assert isinstance(decode_or_finding(collection, world.stored(collection, "x")), Finding)
        assert "is unreadable and is written again" in (await replica.done("apply", "-f", str(path), "--dry-run")).out
        assert (await replica.done("apply", "-f", str(path), "--yes")).out.endswith("\n1 repaired\n")
        assert world.stored(collection, "x") == {**right, "rev": right["rev"] + 1}
        assert (await replica.done("apply", "-f", str(path), "--yes")).out == "1 unchanged\n"


async def delete(replica: Replica, world: World, path: Path) -> None:
    for collection in BROKEN:
        want(path, DOCUMENTS[collection])
        await replica.done("apply", "-f", str(path), "--yes")
        world.rewrite(collection, "x", rev="seven")
        found = decode_or_finding(collection, world.stored(collection, "x"))
        kind = collection.value.removesuffix("s")
        assert f"(hascheduler {kind} delete), and write it again" in found.hint
        refused = await replica.run("apply", "-f", str(path), "--yes")
        assert "delete it and create it again" in refused.err
        await replica.done(kind, "delete", "x", "--yes")
        await replica.done("apply", "-f", str(path), "--yes")
        assert not isinstance(decode_or_finding(collection, world.stored(collection, "x")), Finding)


async def edit_of_a_payload_that_is_too_large(replica: Replica, world: World, path: Path) -> None:
    await replica.done("schedule", "add", "big", "--every", "1h", "--definition", "log", "--payload", '{"a": 1}')
    # As a release that had no such bound has stored it.
    world.rewrite(Collection.SCHEDULES, "big", payload={"a": "$${nominal_time}" * 50_000}, render=True)
    await replica.done("schedule", "edit", "big", "--payload", '{"a": 2}')
    assert world.schedule("big")["payload"] == {"a": 2}


async def pause_again(replica: Replica, world: World, path: Path) -> None:
    def found() -> Any:
        return decode_or_finding(Collection.PAUSES, world.stored(Collection.PAUSES, EVERYTHING))

    pause = ("pause", "--all", "--because", "the disk is full")
    await replica.done(*pause)
    world.rewrite(Collection.PAUSES, EVERYTHING, since_ms="long ago")
    assert "hascheduler pause --all" in found().hint
    world.database.delete(Collection.PAUSES, EVERYTHING)
    await replica.done(*pause)
    assert not isinstance(found(), Finding)


async def token_made_again(replica: Replica, world: World, path: Path) -> None:
    await replica.done("token", "create", "ops", "--role", "viewer", "--tenant", "*")
    [token] = world.everything()["tokens"]
    world.rewrite(Collection.TOKENS, token["_id"], role="king")
    found = decode_or_finding(Collection.TOKENS, world.stored(Collection.TOKENS, token["_id"]))
    assert "hascheduler token create" in found.hint
    world.database.delete(Collection.TOKENS, token["_id"])
    await replica.done("token", "create", "ops", "--role", "viewer", "--tenant", "*")


Remedy = Callable[[Replica, World, Path], Awaitable[None]]


def commands_named() -> Iterator[tuple[Path, str]]:
    for path in HINTS:
        text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))  # texts of several lines
        yield from ((path, command) for command in re.findall(r"\bhascheduler ([a-z][a-z-]+(?: [a-z]+)?)", text))
    runbooks = RUNBOOKS.read_text(encoding="utf-8")
    commands = re.findall(r"(?:\bhs|`hascheduler) ([a-z][a-z-]+(?: [a-z]+)?)", runbooks)
    yield from ((RUNBOOKS, command) for command in commands)


def test_every_command_that_a_text_names_is_there() -> None:
    found = {
        (path.name, *words.split())
        for path, words in commands_named()
        if path == RUNBOOKS or words.split()[0] in COMMANDS
    }
    assert len(found) > 20
    for file, command, *more in found:
        assert command in COMMANDS, file
        groups = COMMANDS[command].commands
        assert not groups or {*more} <= {*groups}, (file, command, more)


@pytest.mark.parametrize("remedy", [apply, delete, edit_of_a_payload_that_is_too_large, pause_again, token_made_again])
async def test_a_remedy_mends_what_it_is_named_for(
    remedy: Remedy, replica: Replica, world: World, tmp_path: Path
) -> None:
    await remedy(replica, world, tmp_path / "wanted.yaml")
