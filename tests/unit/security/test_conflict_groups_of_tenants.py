"""A conflict group is each tenant's own unless its definition says that it is shared: a name of a target that another
tenant uses too held up its jobs, for as long as that one liked."""

import httpx
import pytest

from hascheduler.dispatch.decisions import Dispatch
from hascheduler.mirror.changes import DefinitionSeen
from hascheduler.model.collection import Collection
from hascheduler.schema.definition import ConflictScope, Definition
from hascheduler.schema.noun import read_document
from tests.unit.api.doubles import World
from tests.unit.dispatch.nouns import make_job
from tests.unit.dispatch.scene import Scene, jobs, processors

LOG = "/v1/definitions/log"
TENANT, SHARED = ConflictScope


def started(*started: tuple[str, str], **scopes: ConflictScope) -> list[str]:
    """Those that start at once, of jobs ``(definition, tenant)`` on one target."""
    scene = Scene(
        *(
            DefinitionSeen(Definition(name=name, conflict_group="git", conflict_scope=scope))
            for name, scope in scopes.items()
        ),
        *processors("p", slots=9),
        leading=True,
    )
    waiting = [
        make_job(f"{number}", definition=definition, tenant=tenant, target="repository", sequence=number)
        for number, (definition, tenant) in enumerate(started)
    ]
    return [one.job_id for one in scene.at(0, *jobs(*waiting)).decisions if isinstance(one, Dispatch)]


def test_a_tenants_group_excludes_its_own_jobs_alone() -> None:
    assert started(("x", "acme"), ("x", "acme"), ("x", "other"), x=TENANT) == ["0", "2"]


def test_a_shared_group_excludes_the_jobs_of_all() -> None:
    assert started(("x", "acme"), ("x", "other"), x=SHARED) == ["0"]


@pytest.mark.parametrize("first", ["own", "shared"])
def test_what_is_shared_excludes_and_is_excluded_by_what_is_not(first: str) -> None:
    second = "shared" if first == "own" else "own"
    assert started((first, "acme"), (second, "other"), own=TENANT, shared=SHARED) == ["0"]


def test_a_tenant_whose_name_is_like_a_kind_of_group_is_one_like_others() -> None:
    assert started(("x", "shared"), ("x", "other"), x=TENANT) == ["0", "1"]


async def test_a_definition_of_0_2_0_stays_shared_until_it_is_edited(client: httpx.AsyncClient, world: World) -> None:
    await client.put(LOG, json={"conflict_group": "git", "conflict_scope": "shared"})
    stored = world.stored(Collection.DEFINITIONS, "log")
    del stored["conflict_scope"]
    world.database.replace(Collection.DEFINITIONS, stored)
    assert read_document(Definition, "log", stored).conflict_scope is SHARED
    for method, body in (("PUT", {"conflict_group": "git"}), ("PATCH", {"tier": 3}), ("PUT", {"tier": 4})):
        assert (await client.request(method, LOG, json=body)).json()["conflict_scope"] == "shared"
    tag = {"If-Match": (await client.get(LOG)).headers["etag"]}
    assert (await client.put(LOG, json={"tier": 5}, headers=tag)).json()["conflict_scope"] == "shared"
    shown = (await client.patch(LOG, json={"conflict_scope": "tenant"})).json()
    assert (shown["conflict_scope"], shown["tier"]) == ("tenant", 5)
