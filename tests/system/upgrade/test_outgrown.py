"""A release that can't read the database any more reports it, does no harm, and leaves the work to one that can."""

from typing import Any

import pytest

from hascheduler.embedded.daemons import Daemon
from tests.system.processes import eventually
from tests.system.upgrade.fleet import Fleet
from tests.system.upgrade.releases import Release

pytestmark = [pytest.mark.timeout(300)]

REASON = "the database has schema version 2, and this release reads 1: it takes another release"


async def test_the_version_is_raised_only_when_all_live_processes_read_it(
    fleet: Fleet, present: Release, following: Release
) -> None:
    fleet.release = present
    await fleet.replica("old")
    await fleet.processor("worker")
    fleet.release = following
    await fleet.replica("new")
    for missing in (["old", "worker"], ["worker"]):
        status, out, err = await fleet.command("migrate", "--json")
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert [name for name in ("old", "worker", "new") if f"{name}." in err] == missing
        if "old" in missing:
            await fleet.replicas["old"].terminate()
    await fleet.processors["worker"].terminate()
    await fleet.processor("worker")
    assert (await fleet.migrated())["schema_version"] == {"before": None, "after": 2}
    assert await fleet.database.meta.find_one({}, {"raised_at": False}) == {"_id": "schema", "version": 2, "rev": 1}

    async def is_seen() -> bool:
        return bool((await fleet.cluster("new"))["schema"]["version"] == 2)

    await eventually(is_seen, "the replica that runs has heard of it")
    assert (await fleet.cluster("new"))["ready"]


async def test_a_running_replica_that_can_not_read_the_version_is_not_ready_and_gives_up_its_lease(
    fleet: Fleet, present: Release, following: Release
) -> None:
    fleet.release = present
    old = await fleet.replica("old")
    leader, term = await fleet.leader()
    assert leader is old
    fleet.release = following
    new = await fleet.replica("new")
    await fleet.processor("worker")
    await fleet.schedule("tick", "250ms")
    # A document of a form that only one of the two knows.
    await fleet.database.definitions.insert_one({"_id": "of-form-2", "v": 2, "rev": 1})

    async def is_set_aside() -> bool:
        return bool((await fleet.cluster("old"))["quarantine"])

    await eventually(is_set_aside, "it is set aside")
    [row] = (await fleet.cluster("old"))["quarantine"]
    assert row == {
        "collection": "definitions", "id": "of-form-2", "reason": "v: form 2 is not known to this release; expected 1",
    }  # fmt: skip
    assert (await fleet.cluster("new"))["quarantine"] == []
    # As if it was raised by hand.
    await fleet.database.meta.update_one({"_id": "schema"}, {"$set": {"version": 2}, "$inc": {"rev": 1}}, upsert=True)

    async def is_left_to_the_other() -> bool:
        leads = (await fleet.leader(not_in_term=term))[0] is new
        return leads and (await _ready(fleet, new), await _ready(fleet, old)) == ((200, ""), (503, REASON))

    await eventually(is_left_to_the_other, "the other one leads and is ready")
    [line] = fleet.said("old", "database_outgrown")
    assert (line["level"], line["reason"]) == ("error", REASON)
    fired = len(fleet.nominal_times("tick"))

    async def goes_on() -> bool:
        return len(fleet.nominal_times("tick")) > fired + 4

    await eventually(goes_on, "it fires on")
    assert await old.terminate() == 0
    await fleet.settled()
    fleet.assert_no_gap("tick", 250, 5)
    fleet.assert_no_effect_twice()


@pytest.mark.parametrize(
    "arguments", [["serve", "--http-port", "0"], ["processor", "processors.log"], ["migrate"], ["migrate", "--dry-run"]]
)
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"version": 2, "rev": 1}, REASON),
        ({"version": 0, "rev": 1}, REASON.replace("version 2", "version 0")),
        ({"version": "1"}, "the schema version in meta: version: '1' (str); expected an integer"),
    ],
)
async def test_a_starting_replica_that_can_not_read_the_version_refuses_with_one_line(
    fleet: Fleet, present: Release, arguments: list[str], said: dict[str, Any], reason: str
) -> None:
    fleet.release = present
    await fleet.database.meta.insert_one({"_id": "schema", **said})
    status, out, err = await fleet.command(*arguments)
    assert (status, out, err) == (1, "", f"hascheduler: {reason}\n")
    assert await fleet.database.list_collection_names() == ["meta"]


async def test_a_version_that_is_lowered_by_hand_is_noticed(fleet: Fleet, present: Release) -> None:
    fleet.release = present
    replica = await fleet.replica("one")
    for said, status in (({"version": 2}, 503), ({"version": "two"}, 503), ({"version": 1}, 200)):
        await fleet.database.meta.update_one({"_id": "schema"}, {"$set": said}, upsert=True)

        async def is_heard_of(status: int = status) -> bool:
            return (await _ready(fleet, replica))[0] == status

        await eventually(is_heard_of, f"the version {said}")


async def _ready(fleet: Fleet, replica: Daemon) -> tuple[int, str]:
    answer = await fleet.http.get(replica.url + "/readyz")
    return answer.status_code, answer.json()["reason"]
