"""Each command that a text names is there, and a finding's remedy mends the state that it is named for."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hascheduler.check.documents import decode_or_finding
from hascheduler.check.finding import Finding
from hascheduler.cli.commands import COMMANDS
from hascheduler.model.collection import Collection
from hascheduler.schema.pause import EVERYTHING
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.test_apply import DOCUMENTS, want

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


def named() -> Iterator[tuple[Path, str]]:
    """Each command that a text names, by the file."""
    for path in HINTS:
        text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))  # texts of several lines
        yield from ((path, command) for command in re.findall(r"\bhascheduler ([a-z][a-z-]+(?: [a-z]+)?)", text))
    runbooks = RUNBOOKS.read_text(encoding="utf-8")
    commands = re.findall(r"(?:\bhs|`hascheduler) ([a-z][a-z-]+(?: [a-z]+)?)", runbooks)
    yield from ((RUNBOOKS, command) for command in commands)


def test_every_command_that_a_text_names_is_there() -> None:
    found = {(path.name, *words.split()) for path, words in named() if path == RUNBOOKS or words.split()[0] in COMMANDS}
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
