"""``hascheduler apply --owner``: of two teams neither takes what is the other's, nor deletes what is still used."""

from pathlib import Path
from typing import Any

import pytest

from hascheduler.cli.resources import named
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World
from tests.unit.cli.invoking import Replica

_LANE = "kind: Lane\nname: bulk\nweight: 2\n"
_TENANT = "kind: Tenant\nname: acme\nmax_running: 5\n"
_DEFINITION = "kind: Definition\nname: repack\nmax_concurrency: 3\n"
_SCHEDULE = (
    "kind: Schedule\nname: nightly\ntrigger: {type: cron, expression: '@daily'}\n"
    "job: {definition: repack, lane: bulk, tenant: acme}\n"
)
_ALL = (_LANE, _TENANT, _DEFINITION, _SCHEDULE)
_NOUNS = [(Collection.DEFINITIONS, "repack"), (Collection.LANES, "bulk"), (Collection.TENANTS, "acme")]


class Team:
    """One that applies its folder."""

    def __init__(self, replica: Replica, folder: Path, owner: str) -> None:
        self._replica = replica
        self._file = folder / f"{owner}.yaml"
        self._owner = owner

    async def apply(self, *documents: str, more: tuple[str, ...] = ("--prune", "--yes")) -> Any:
        self._file.write_text("---\n".join((f"{{kind: Apply, owner: {self._owner}}}\n", *documents)))
        return await self._replica.run("apply", "-f", str(self._file), *more)


def names(world: World, *collections: Collection) -> list[str]:
    of = collections or (Collection.SCHEDULES, *(collection for collection, _ in _NOUNS))
    return sorted(document["_id"] for collection in of for document in world.database.documents(collection))


@pytest.fixture
def team_a(replica: Replica, tmp_path: Path) -> Team:
    return Team(replica, tmp_path, "team-a")


@pytest.fixture
def team_b(replica: Replica, tmp_path: Path) -> Team:
    return Team(replica, tmp_path, "team-b")


async def test_what_a_folder_no_longer_holds_goes_and_schedules_go_first(
    replica: Replica, team_a: Team, world: World
) -> None:
    assert (await team_a.apply(*_ALL)).out.endswith("\n4 created\n")
    assert [world.stored(collection, name)["owner"] for collection, name in _NOUNS] == ["team-a"] * 3
    assert (await team_a.apply(*_ALL)).out == "4 unchanged\n"
    tried = await team_a.apply(more=("--prune", "--dry-run"))
    assert [line for line in tried.out.splitlines() if line.endswith(" goes")] == [
        "schedule nightly goes", "definition repack goes", "lane bulk goes", "tenant acme goes"
    ]  # fmt: skip
    assert "-weight: 2" in tried.out
    assert "team-a" in (await replica.done("lane", "list", "--columns", "name,owner")).out
    assert (tried.status, tried.out.splitlines()[-1]) == (0, "would be: 4 pruned")
    assert len(names(world)) == 4
    assert (await team_a.apply()).out.endswith("\n4 pruned\n")
    assert names(world) == []


async def test_what_is_nobodys_or_anothers_is_not_pruned(replica: Replica, team_a: Team, team_b: Team) -> None:
    await team_b.apply(_LANE)
    await replica.done("definition", "put", "by-hand")
    await replica.done("tenant", "put", "acme", "--owner", "team-a")
    assert (await team_a.apply(_DEFINITION)).out.endswith("\n1 created, 1 pruned\n")
    assert (await replica.done("lane", "get", "bulk")).out == "name: bulk\nweight: 2\nowner: team-b\n"
    await replica.done("definition", "edit", "repack", "--owner", "none")
    assert (await team_a.apply()).out == "\n"
    await replica.done("definition", "get", "repack")
    await replica.done("definition", "get", "by-hand")


@pytest.mark.parametrize("document", _ALL)
async def test_what_is_anothers_is_taken_only_where_it_is_said(
    replica: Replica, team_a: Team, team_b: Team, world: World, document: str
) -> None:
    await team_a.apply(document)
    before = world.everything()
    for more in (("--yes",), ("--dry-run",), ("--yes", "--json")):
        ended = await team_b.apply(document, more=more)
        assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert " is team-a's, and would be team-b's; --take-over takes what is another's" in ended.err
    assert (await replica.done("apply", "-f", "-", input=document)).out == "1 unchanged\n", "as nobody's file has it"
    assert world.everything() == before
    ended = await team_b.apply(document, more=("--yes", "--take-over"))
    assert (ended.status, ended.out.endswith("\n1 changed\n")) == (0, True)
    assert (await team_a.apply()).out == "\n", "it is team-b's now"
    assert (await team_b.apply()).out.endswith("\n1 pruned\n")


async def test_what_a_schedule_of_another_names_stays(team_a: Team, team_b: Team, world: World) -> None:
    await team_a.apply(*_ALL)
    await team_b.apply(_SCHEDULE.replace("nightly", "weekly"), _SCHEDULE.replace("nightly", "yearly"))
    said = "schedule weekly and 1 more still use it"
    tried = await team_a.apply(more=("--prune", "--dry-run"))
    assert tried.status == 1
    assert f"definition repack stays: {said}" in tried.out
    answer = (await team_a.apply(more=("--prune", "--dry-run", "--json"))).json
    assert ("pruned", said) in [(told["change"], told["problem"]) for told in answer["documents"]]
    assert len(names(world)) == 6
    ended = await team_a.apply()
    assert (ended.status, ended.out.splitlines()[-1]) == (1, "1 pruned, 3 failed")
    assert ended.err.splitlines() == [
        f"hascheduler: {noun}: {said}" for noun in ("definition repack", "lane bulk", "tenant acme")
    ]
    assert names(world) == ["acme", "bulk", "repack", "weekly", "yearly"]
    await team_b.apply()
    assert (await team_a.apply()).out.endswith("\n3 pruned\n")


async def test_a_schedule_that_names_another_from_now_on_holds_nothing_back(team_a: Team, world: World) -> None:
    await team_a.apply(*_ALL)
    ended = await team_a.apply(_LANE, _TENANT, _SCHEDULE.replace("repack", "log"))
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "1 changed, 2 unchanged, 1 pruned")
    assert names(world) == ["acme", "bulk", "nightly"]


async def test_what_a_live_job_is_of_stays_until_it_has_ended(replica: Replica, team_a: Team, world: World) -> None:
    await team_a.apply(*_ALL)
    where = ("--tenant", "acme", "--lane", "bulk", "--json")
    job: Any = (await replica.done("job", "submit", "repack", "--target", "x", *where)).json
    ended = await team_a.apply()
    assert (ended.status, ended.out.splitlines()[-1]) == (1, "1 pruned, 3 failed")
    said = f"job {job['id']}, which has not ended, uses it"
    assert [line.partition(": ")[2].partition(": ")[2] for line in ended.err.splitlines()] == [said] * 3
    await replica.done("job", "cancel", job["id"], "--yes")
    assert (await team_a.apply()).status == 0
    assert names(world) == []


async def test_of_more_live_jobs_than_are_looked_at_each_may_be_of_the_lane(
    replica: Replica, team_a: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named, "LOOKED_AT_MAX", 2)
    await team_a.apply(_LANE)
    for target in ("x", "y"):
        await replica.done("job", "submit", "repack", "--target", target)
    ended = await team_a.apply()
    assert (ended.status, "too many to see whether one uses it" in ended.err) == (1, True)


async def test_a_tenant_with_tokens_stays(replica: Replica, team_a: Team) -> None:
    await team_a.apply(_TENANT)
    await replica.done("token", "create", "ci", "--role", "viewer", "--tenant", "acme")
    ended = await team_a.apply()
    assert ended.status == 1
    assert ended.err.startswith("hascheduler: tenant acme: token ")
    assert ended.err.endswith(" (ci) is of it\n")


async def test_what_comes_to_use_it_after_the_plan_is_noticed(
    replica: Replica, team_a: Team, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    await team_a.apply(_LANE, _DEFINITION)
    looks: list[Any] = []

    def blind_at_first(*asked: Any) -> Any:
        looks.append(asked)
        return {} if len(looks) == 1 else named.uses(*asked)

    monkeypatch.setattr("hascheduler.cli.resources.apply.uses", blind_at_first)
    await replica.done("schedule", "add", "late", "--every", "1h", "--definition", "repack")
    ended = await team_a.apply()
    assert (ended.status, ended.err) == (1, "hascheduler: definition repack: schedule late still uses it\n")
    assert len(looks) == 2, "one look at the plan, and one before the first noun goes"
    assert names(world) == ["late", "repack"]
