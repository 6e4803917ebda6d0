"""``hascheduler apply``: shows the difference, asks, and replaces exactly what it has shown."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hascheduler.cli.input.manifests import read_manifests
from hascheduler.cli.replica import replica as replica_at
from hascheduler.cli.resources.apply import carry_out, make_plan
from hascheduler.errors import Conflict
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import WallMs
from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica
from tests.unit.cli.terminal import Terminal

_WANTED = """\
kind: Schedule
name: nightly
trigger: {type: cron, expression: "30 2 * * *", timezone: Europe/Paris}
job: {definition: repack}
---
kind: Definition
name: repack
max_concurrency: 2
---
kind: Schedule
name: tick
labels: {team: a}
trigger: {type: interval, every: 1s}
paused: true
job: {definition: log, payload: {day: 2030-02-01}}
"""
_NAMES = (("schedule", "nightly"), ("definition", "repack"), ("schedule", "tick"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "wanted.yaml"
    want(file, _WANTED)
    return file


def want(file: Path, text: str) -> None:
    file.write_text(text)


def names(world: World, collection: Collection = Collection.SCHEDULES) -> list[str]:
    return sorted(document["_id"] for document in world.database.documents(collection))


async def test_what_is_new_is_shown_and_made(replica: Replica, world: World, file: Path) -> None:
    tried = await replica.done("apply", "-f", str(file), "--dry-run")
    assert (tried.out.endswith("\nwould be: 3 created\n"), names(world)) == (True, [])
    ended = await replica.done("apply", "-f", str(file), "--yes")
    assert "definition repack is new" in ended.out
    assert "+  expression: 30 2 * * *" in ended.out
    assert ended.out.endswith("\n3 created\n")
    assert names(world) == ["nightly", "tick"]
    tick = world.schedule("tick")
    assert tick["paused_at_ms"] is not None
    assert tick["labels"] == {"team": "a", "managed-by": "hascheduler-apply"}
    assert tick["payload"] == {"day": "2030-02-01"}


_NOUNS = """\
kind: Tenant
name: acme
max_running: 5
---
kind: Lane
name: bulk
policy: fair
promote_after: 90
---
kind: Definition
name: repack
rate_limit: {per: 60, count: 5}
resources: {cpu: 2}
---
kind: Schedule
name: nightly
trigger: {type: cron, expression: "@daily", calendars: {only: [business-days], except: []}}
job: {definition: repack, tenant: acme, lane: bulk, resources: {cpu: 1}}
---
kind: Calendar
name: business-days
weekdays: [mon-fri]
exclude: [12-24, 2030-12-31]
"""


async def test_all_nouns_are_applied_and_before_the_schedules(replica: Replica, world: World, file: Path) -> None:
    want(file, _NOUNS)
    assert (await replica.done("apply", "-f", str(file), "--yes")).out.endswith("\n5 created\n")
    assert world.stored(Collection.LANES, "bulk")["criteria"] == ["tier", "fairness", "arrival"]
    job = world.schedule("nightly")["job"]
    assert (job["tenant"], job["fairness_key"], job["resources"]) == ("acme", "acme", {"cpu": 1})
    assert (await replica.done("apply", "-f", str(file))).out == "5 unchanged\n"
    nouns = (("lane", "bulk"), ("tenant", "acme"), ("calendar", "business-days"))
    again = "---\n".join([(await replica.done(kind, "get", name, "--yaml")).out for kind, name in nouns])
    assert (await replica.done("apply", "-f", "-", input=again)).out == "3 unchanged\n"
    want(file, _NOUNS.replace("policy: fair", "weight: 2").replace("max_running: 5", "max_running: 6"))
    ended = await replica.done("apply", "-f", str(file), "--yes")
    assert "-max_running: 5\n+max_running: 6" in ended.out
    assert ended.out.endswith("\n2 changed, 3 unchanged\n")
    assert world.stored(Collection.LANES, "bulk")["criteria"] is None


async def test_applying_again_changes_nothing_and_asks_nothing(replica: Replica, world: World, file: Path) -> None:
    await replica.done("apply", "-f", str(file), "--yes")
    before = world.everything()
    again = await replica.done("apply", "-f", str(file))
    assert again.out == "3 unchanged\n"
    assert world.everything() == before


async def test_an_expression_that_may_not_be_meant_is_warned_of_before_it_is_written(
    replica: Replica, world: World, file: Path
) -> None:
    want(file, _WANTED.replace("30 2 * * *", "*/15 * * * * *"))
    ended = await replica.done("apply", "-f", str(file), "--dry-run")
    warning = "fires each second of every 15th minute, as the seconds come last; did you mean '* * * * * */15'?"
    assert f"warning: '*/15 * * * * *' {warning}" in ended.out
    assert names(world) == []
    answer: Any = (await replica.done("apply", "-f", str(file), "--yes", "--json")).json
    assert [len(document["warnings"]) for document in answer["documents"]] == [0, 1, 0]


async def test_cron_of_other_tools_is_stored_as_it_is_here_and_stays_unchanged(
    replica: Replica, world: World, file: Path
) -> None:
    want(file, _WANTED.replace("30 2 * * *", "@every 90s").replace("Europe/Paris", "europe/paris"))
    await replica.done("apply", "-f", str(file), "--yes")
    assert world.schedule("nightly")["trigger"].items() >= {"type": "interval", "every_ms": 90_000}.items()
    assert (await replica.done("apply", "-f", str(file))).out == "3 unchanged\n"
    want(file, _WANTED.replace("30 2 * * *", "0 9 L-3W * ?").replace("Europe/Paris", "europe/paris"))
    await replica.done("apply", "-f", str(file), "--yes")
    stored = {"type": "cron", "expression": "0 9 L-3W * ?", "timezone": "Europe/Paris"}
    assert world.schedule("nightly")["trigger"] == stored
    assert (await replica.done("apply", "-f", str(file))).out == "3 unchanged\n"


async def test_a_change_is_shown_as_a_difference_and_written(replica: Replica, world: World, file: Path) -> None:
    await replica.done("apply", "-f", str(file), "--yes")
    anchor_ms = world.schedule("tick")["trigger"]["anchor_ms"]
    want(file, _WANTED.replace("every: 1s", "every: 2s").replace("max_concurrency: 2", "max_concurrency: 3"))
    ended = await replica.done("apply", "-f", str(file), "--yes")
    assert "-  every: 1s\n+  every: 2s" in ended.out
    assert "-max_concurrency: 2\n+max_concurrency: 3" in ended.out
    assert ended.out.endswith("\n2 changed, 1 unchanged\n")
    assert world.schedule("tick")["trigger"] == {"type": "interval", "every_ms": 2_000, "anchor_ms": anchor_ms}
    assert world.schedule("tick")["paused_at_ms"] is not None


async def test_paused_changes_only_where_the_document_has_it(replica: Replica, world: World, file: Path) -> None:
    await replica.done("apply", "-f", str(file), "--yes")
    want(file, _WANTED.replace("paused: true\n", ""))
    assert (await replica.done("apply", "-f", str(file))).out == "3 unchanged\n"
    want(file, _WANTED.replace("paused: true", "paused: false"))
    ended = await replica.done("apply", "-f", str(file), "--yes")
    assert "-paused: true" in ended.out
    assert world.schedule("tick")["paused_at_ms"] is None


async def test_only_what_apply_wrote_for_this_owner_is_pruned(
    replica: Replica, world: World, file: Path, tmp_path: Path
) -> None:
    await replica.done(
        "schedule", "add", "by-hand", "--every", "1s", "--definition", "log", "--label", "apply-owner=team-a"
    )
    theirs = tmp_path / "theirs.yaml"
    for name, owner in (("theirs", ("--owner", "team-b")), ("nobodys", ())):
        want(theirs, f"kind: Schedule\nname: {name}\ntrigger: {{type: interval, every: 1s}}\njob: {{definition: log}}")
        await replica.done("apply", "-f", str(theirs), "--yes", *owner)
    theirs.unlink()
    others = ["by-hand", "nobodys", "theirs"]
    ours = ("apply", "-f", str(file), "--owner", "team-a")
    await replica.done(*ours, "--yes")
    want(file, _WANTED.split("---\n", 1)[1])
    assert (await replica.done(*ours)).out == "2 unchanged\n"
    tried = await replica.done(*ours, "--prune", "--dry-run")
    assert [line for line in tried.out.splitlines() if line.endswith(" goes")] == ["schedule nightly goes"]
    assert names(world) == sorted([*others, "nightly", "tick"])
    ended = await replica.done(*ours, "--prune", "--yes")
    assert ended.out.endswith("\n2 unchanged, 1 pruned\n")
    assert names(world) == sorted([*others, "tick"])


async def test_nothing_is_pruned_where_nobody_is_named(replica: Replica, world: World, file: Path) -> None:
    await replica.done("apply", "-f", str(file), "--yes")
    want(file, _WANTED.split("---\n", 1)[1])
    before = world.everything()
    ended = await replica.run("apply", "-f", str(file), "--prune", "--yes")
    assert (ended.status, ended.out) == (2, "")
    assert "--prune: it is not said whose may go; expected --owner NAME, or a document" in ended.err
    assert world.everything() == before


async def test_an_owner_stays_where_none_is_named_and_a_document_names_one(
    replica: Replica, world: World, file: Path
) -> None:
    await replica.done("apply", "-f", str(file), "--owner", "team-a", "--yes")
    assert (await replica.done("apply", "-f", str(file))).out == "3 unchanged\n"
    assert world.schedule("tick")["labels"]["apply-owner"] == "team-a"
    want(file, "{kind: Apply, owner: team-b}\n---\n" + _WANTED)
    ended = await replica.done("apply", "-f", str(file), "--take-over", "--yes")
    assert "-  apply-owner: team-a\n+  apply-owner: team-b" in ended.out
    assert "-owner: team-a\n+owner: team-b" in ended.out
    want(file, "{kind: Apply, owner: team-b}")
    ended = await replica.done("apply", "-f", str(file), "--prune", "--yes")
    assert ended.out.endswith("3 pruned\n")
    assert names(world) == names(world, Collection.DEFINITIONS) == []


async def test_without_a_terminal_it_shows_the_difference_and_does_nothing(
    replica: Replica, world: World, file: Path
) -> None:
    ended = await replica.run("apply", "-f", str(file))
    assert ended.status == 2
    assert "schedule tick is new" in ended.out
    assert ended.err.startswith("hascheduler: --yes: nobody is here to ask: Apply 3 changes?")
    assert names(world) == []


@pytest.mark.parametrize(("answer", "made"), spread([("n\n", []), ("y\n", ["nightly", "tick"])], check=1))
async def test_on_a_terminal_it_asks(url: str, world: World, file: Path, answer: str, made: list[str]) -> None:
    terminal = Terminal("apply", "-f", str(file), "--url", url)
    await terminal.until("Apply 3 changes?")
    assert "\x1b[32m+" in terminal.shown, "differences have colours on a terminal"
    terminal.type(answer)
    assert await terminal.ended() == 0
    assert names(world) == made
    assert ("not done: " in terminal.shown) == (answer == "n\n")


@pytest.mark.parametrize("expression", ["61 * * * *", "* " * 5_120], ids=["wrong", "10 KiB"])
async def test_nothing_is_sent_while_any_document_is_wrong(
    replica: Replica, world: World, file: Path, expression: str
) -> None:
    want(file, _WANTED.replace("30 2 * * *", expression).replace("team: a", "team: 1"))
    ended = await replica.run("apply", "-f", str(file), "--yes")
    assert (ended.status, ended.out, ended.err.count("\n"), len(ended.err) < 1_000) == (2, "", 1, True)
    assert f"{file}, document 1, trigger.expression: " in ended.err
    assert f"{file}, document 3, labels.team: 1 is not a text" in ended.err
    assert names(world) == names(world, Collection.DEFINITIONS) == []


async def test_a_replica_that_loses_its_database_is_the_worlds_fault(
    replica: Replica, world: World, file: Path
) -> None:
    world.go_away()
    ended = await replica.run("apply", "-f", str(file), "--yes")
    assert (ended.status, ended.err.count("\n")) == (1, 1)


async def test_what_is_shown_as_yaml_can_be_applied(replica: Replica, world: World, file: Path) -> None:
    await replica.done("apply", "-f", str(file), "--yes")
    before = world.everything()
    documents = "---\n".join([(await replica.done(kind, "get", name, "--yaml")).out for kind, name in _NAMES])
    assert (await replica.done("apply", "-f", "-", input=documents)).out == "3 unchanged\n"
    await replica.done("schedule", "delete", "tick", "--yes")
    await replica.done("apply", "-f", "-", "--yes", input=documents)
    assert world.schedule("tick") == before["schedules"][names(world).index("tick")]


async def test_one_that_is_refused_does_not_stop_the_others(replica: Replica, world: World, file: Path) -> None:
    only_the_replica_refuses = "definition: repack, render: true, payload: '${x}'"
    want(file, _WANTED.replace("definition: repack", only_the_replica_refuses))
    asked = await replica.run("apply", "-f", str(file), "--json")
    assert (asked.status, asked.out) == (2, "")
    answer: Any = (await replica.run("apply", "-f", str(file), "--json", "--yes")).json
    told = [(one["kind"], one["name"], one["change"], one["problem"] is None) for one in answer["documents"]]
    assert told == [
        ("definition", "repack", "created", True), ("schedule", "nightly", "created", False),
        ("schedule", "tick", "created", True),
    ]  # fmt: skip
    assert names(world) == ["tick"]
    ended = await replica.run("apply", "-f", str(file), "--yes")
    assert (ended.status, ended.out.splitlines()[-1]) == (2, "2 unchanged, 1 failed")
    assert ended.err.startswith("hascheduler: schedule nightly: job.payload: there is no ${x}; expected one of ")


@pytest.mark.parametrize("name", ["tick", "nightly", "repack"])
async def test_a_concurrent_change_is_not_replaced(
    replica: Replica, url: str, world: World, file: Path, name: str
) -> None:
    await replica.done("apply", "-f", str(file), "--owner", "team-a", "--yes")
    changed = _WANTED.replace("every: 1s", "every: 2s").replace("max_concurrency: 2", "max_concurrency: 3")
    want(file, changed.split("---\n", 1)[1])

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


_GRAPH = """\
kind: Schedule
name: tick
trigger: {type: interval, every: 1s}
jobs:
- {ref: extract, definition: pull}
- {ref: load, definition: store, depends_on: [extract]}
"""


async def test_a_graph_is_applied_from_a_file_and_shown(replica: Replica, file: Path) -> None:
    want(file, _GRAPH)
    assert (await replica.done("apply", "-f", str(file), "--yes")).out.endswith("1 created\n")
    assert (await replica.done("apply", "-f", str(file))).out == "1 unchanged\n"
    shown = (await replica.done("schedule", "get", "tick")).out
    for part in ("extract  pull", "load     store after extract"):
        assert part in shown
    again = (await replica.done("schedule", "get", "tick", "--yaml")).out
    assert (await replica.done("apply", "-f", "-", input=again)).out == "1 unchanged\n"
