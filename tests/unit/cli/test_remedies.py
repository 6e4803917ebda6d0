"""Each command that a finding, an explanation or a runbook names is run against the state that it is named for."""

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
from tests.unit.cli.test_apply import want

ROOT = Path(__file__).parents[3]
HINTS = (*ROOT.glob("hascheduler/check/*.py"), *ROOT.glob("hascheduler/mongo/check/*.py"),
         ROOT / "hascheduler/dispatch/explainer.py", ROOT / "hascheduler/mongo/unreachable.py",
         ROOT / "hascheduler/api/routing/route_rules.py")  # fmt: skip
RUNBOOKS = ROOT / "k8s/monitoring/rules.yaml"

BROKEN: Mapping[Collection, tuple[str, Mapping[str, Any]]] = {
    Collection.DEFINITIONS: ("kind: Definition\nname: x\nmax_concurrency: 2\n", {"max_concurrency": "many"}),
    Collection.LANES: ("kind: Lane\nname: x\nweight: 2\n", {"weight": "heavy"}),
    Collection.CALENDARS: ("kind: Calendar\nname: x\nweekdays: [mon]\n", {"include": 7}),
    Collection.TENANTS: ("kind: Tenant\nname: x\nmax_running: 2\n", {"max_running": "few"}),
    Collection.SCHEDULES: (
        "kind: Schedule\nname: x\ntrigger: {type: interval, every: 1h}\njob: {definition: log}\n",
        {"trigger": {"type": "sunrise"}},
    ),
}


async def apply(replica: Replica, world: World, path: Path) -> None:
    for collection, (manifest, broken) in BROKEN.items():
        want(path, manifest)
        await replica.done("apply", "-f", str(path), "--yes")
        right = world.stored(collection, "x")
        world.rewrite(collection, "x", **broken)
        assert isinstance(decode_or_finding(collection, world.stored(collection, "x")), Finding)
        assert "can't be read, and is written again" in (await replica.done("apply", "-f", str(path), "--dry-run")).out
        assert (await replica.done("apply", "-f", str(path), "--yes")).out.endswith("\n1 repaired\n")
        assert world.stored(collection, "x") == {**right, "rev": right["rev"] + 1}
        assert (await replica.done("apply", "-f", str(path), "--yes")).out == "1 unchanged\n"


async def delete(replica: Replica, world: World, path: Path) -> None:
    for collection, (manifest, _) in BROKEN.items():
        want(path, manifest)
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
    world.rewrite(Collection.SCHEDULES, "big", payload={"a": "$${nominal_time}" * 700_000}, render=True)
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
REMEDIES: Mapping[str, Remedy | str] = {
    "apply": apply,
    **dict.fromkeys((f"{kind.value.removesuffix('s')} delete" for kind in BROKEN), delete),
    "schedule edit": edit_of_a_payload_that_is_too_large,
    "pause": pause_again,
    "token create": token_made_again,
    **dict.fromkeys(
        ("schedule add", "schedule list", "schedule reset", "schedule backfill", "schedule verdicts", "verdicts"),
        "tests/unit/cli/test_schedule_commands.py",
    ),
    "schedule timeline": "tests/unit/cli/test_preview.py",
    **dict.fromkeys(
        ("cluster", "resume", "processor drain", "processor undrain", "processor list"),
        "tests/unit/cli/test_cluster.py",
    ),
    **dict.fromkeys(("why", "job list"), "tests/unit/cli/test_job_commands.py"),
    **dict.fromkeys(("job retry", "job cancel"), "tests/unit/cli/test_job_changes.py"),
    **dict.fromkeys(("tenant edit", "tenant list"), "tests/unit/cli/test_nouns.py"),
    "audit-log": "tests/unit/cli/test_token_commands.py",
    # They need a whole system.
    "check": "tests/integration/check/test_command.py",
    "migrate": "tests/system/upgrade/test_rolling_upgrade.py",
    "bootstrap": "tests/integration/bootstrap",
    "record": "tests/unit/cli/test_recordings.py",
    "events": "tests/unit/cli/test_events.py",
}
"""By command; a path is that of the test which runs it."""


def named() -> Iterator[tuple[Path, str]]:
    """Each command that a text names, by the file."""
    for path in HINTS:
        text = re.sub(r'"\s+f?"', "", path.read_text(encoding="utf-8"))  # texts of several lines
        yield from ((path, command) for command in re.findall(r"\bhascheduler ([a-z][a-z-]+(?: [a-z]+)?)", text))
    runbooks = RUNBOOKS.read_text(encoding="utf-8")
    commands = re.findall(r"(?:\bhs|`hascheduler) ([a-z][a-z-]+(?: [a-z]+)?)", runbooks)
    yield from ((RUNBOOKS, command) for command in commands)


def command_of(words: str) -> str | None:
    """The command that the words begin with; None if they are no command."""
    first, _, second = words.partition(" ")
    if first not in COMMANDS:
        return None
    return words if f"{first} {second}" in REMEDIES else first


def test_every_remedy_that_a_text_names_is_run() -> None:
    commands = {(path.name, command_of(words)) for path, words in named()} - {(path.name, None) for path in HINTS}
    unknown = {(file, command) for file, command in commands if command not in REMEDIES}
    assert not unknown, f"no test runs them: {sorted(unknown, key=str)}"
    assert len(commands) > 20
    for where in REMEDIES.values():
        assert callable(where) or (ROOT / where).exists()


@pytest.mark.parametrize("remedy", dict.fromkeys(each for each in REMEDIES.values() if callable(each)))
async def test_a_remedy_mends_what_it_is_named_for(
    remedy: Remedy, replica: Replica, world: World, tmp_path: Path
) -> None:
    await remedy(replica, world, tmp_path / "wanted.yaml")
