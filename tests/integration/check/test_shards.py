"""Of several shards: what is in the wrong one, and names that are reserved for nobody or for nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest
from pymongo.errors import WriteError

from hascheduler.check.finding import CheckReport, Finding, FindingKind, merged_report
from hascheduler.model.collection import Collection
from hascheduler.model.documents.routing import encode_routing
from hascheduler.model.routing import Routing, shard_database, slot_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.check.scan import Deployment, MongoInvariantScan
from hascheduler.mongo.connection import CLIENT_OPTIONS, Client, Database, connect, open_database
from hascheduler.mongo.schema.indexes import ensure_collections_and_indexes
from hascheduler.ports.invariant_scan import LIGHT, ScanBounds
from hascheduler.ports.sharding import ReservedName, encode_reserved_name
from tests.integration.check.healthy import AT_ONCE, CONFIG, Healthy
from tests.integration.check.test_bounds import demand_index
from tests.integration.check.test_motion import MovingScan
from tests.integration.check.test_nonsense import IDS, mutated
from tests.sent_commands import SentCommands
from tests.unit.check.test_command import run
from tests.unit.check.test_shards import of_one_slot

pytestmark = [pytest.mark.timeout(300)]

SHARDS = ("default", "0001", "0002")
_HOME_SLOTS = {slot_of("acme"), slot_of("tenant")}
"""Those of the tenants of `Healthy`, which is in the home."""
ROUTING = Routing(1, SHARDS, tuple(0 if slot in _HOME_SLOTS else slot % 3 for slot in range(256)))
ONE, OTHER_ONE = [name for name in (f"t{number}" for number in range(64)) if ROUTING.index_of(name) == 1][:2]
TWO = next(name for name in (f"t{number}" for number in range(64)) if ROUTING.index_of(name) == 2)
LONG_AGO_MS = 300_000


@dataclass
class Shards:
    """Three, of which the home has what `Healthy` has, and the second one schedule, each with its name reserved."""

    databases: Sequence[Database]
    healthy: Healthy

    @classmethod
    async def make(cls, databases: Sequence[Database]) -> "Shards":
        shards = cls(databases, await Healthy.make(databases[0]))
        await databases[0].routing.insert_one(encode_routing(ROUTING))
        await databases[1].schedules.insert_one(shards.schedule("tock", ONE))
        await databases[1].jobs.insert_many([shards.job("job:one", ONE), shards.job("job:done", ONE, "succeeded")])
        await databases[2].jobs.insert_one(shards.job("job:two", TWO))
        await shards.reserve("tick", "tenant")
        await shards.reserve("tock", ONE)
        return shards

    def scan(self, index: int, kind: type[MongoInvariantScan] = MongoInvariantScan) -> MongoInvariantScan:
        databases = dict(zip(SHARDS, self.databases, strict=True))
        return kind(self.databases[index], Deployment(CONFIG, SHARDS[index], databases=databases))

    async def look(self, bounds: ScanBounds = AT_ONCE) -> CheckReport:
        return merged_report({shard: await self.scan(index).look(bounds) for index, shard in enumerate(SHARDS)})

    def job(self, id: str, tenant: str, state: str = "pending", **fields: Any) -> dict[str, Any]:
        return self.healthy.job(id, state, tenant=tenant, **fields)

    def schedule(self, name: str, tenant: str, **fields: Any) -> dict[str, Any]:
        """One that has not been due yet."""
        now = self.healthy.now
        new = self.healthy.schedule(name, created_at_ms=now, since_ms=now, cursor_ms=now)
        return new | {"job": {**new["job"], "tenant": tenant}} | fields

    async def reserve(self, name: str, tenant: str, ago_ms: int = LONG_AGO_MS, **fields: Any) -> None:
        reserved = encode_reserved_name(ReservedName(name, tenant, 1, WallMs(self.healthy.now - ago_ms)))
        await self.databases[0].names.insert_one(reserved | fields)


@pytest.fixture
async def databases(mongodb_uri: str, ready_databases: Sequence[str]) -> AsyncIterator[Sequence[Database]]:
    client = connect(mongodb_uri)
    yield [open_database(client, name) for name in ready_databases]
    await client.close()


@pytest.fixture
async def shards(databases: Sequence[Database]) -> Shards:
    return await Shards.make(databases)


def keys(found: Sequence[Finding]) -> list[tuple[FindingKind, str]]:
    return [finding.key for finding in found]


async def test_a_healthy_deployment_has_no_findings(shards: Shards) -> None:
    report = await shards.look()
    assert report.findings == ()
    assert report.complete
    assert (report.looked_at["schedules by shard"], report.looked_at["names by shard"]) == (2, 2)


async def test_times_of_a_schedule_are_not_compared_while_its_jobs_are_in_two_shards(shards: Shards) -> None:
    """A slot arrives with its schedules, and their finished jobs follow."""
    created_ms = shards.healthy.now - 600_000
    times = {"created_at_ms": created_ms, "since_ms": created_ms, "cursor_ms": shards.healthy.now}
    await shards.databases[1].schedules.insert_one(shards.schedule("tack", ONE, **times))
    await shards.reserve("tack", ONE)
    left = (FindingKind.VERDICT_MISSING, "0001: schedules/tack")
    assert left in keys((await shards.look()).findings)
    slot = slot_of(ONE)
    for routing, is_compared in (
        (ROUTING.beginning({slot: 2}), False),
        (replace(ROUTING, epoch=3, leaving={slot: 2}), False),
        (replace(ROUTING, epoch=4), True),
    ):
        await shards.databases[0].routing.replace_one({}, encode_routing(routing))
        assert (left in keys((await shards.look()).findings)) == is_compared


async def put_schedule(shards: Shards, index: int, name: str, tenant: str) -> None:
    await shards.databases[index].schedules.insert_one(shards.schedule(name, tenant))


async def put_job(shards: Shards, index: int, id: str, tenant: str, state: str = "pending", **fields: Any) -> None:
    await shards.databases[index].jobs.insert_one(shards.job(id, tenant, state, **fields))


async def schedule_of_another_name(shards: Shards) -> None:
    await put_schedule(shards, 2, "tack", TWO)
    await shards.reserve("tack", ONE)


async def reserved_schedule_elsewhere(shards: Shards) -> None:
    await put_schedule(shards, 0, "tack", ONE)
    await shards.reserve("tack", ONE)


# what is planted → kind, document, words of what and hint
ROWS: dict[str, tuple[Callable[[Shards], Awaitable[object]], FindingKind, str, tuple[str, ...]]] = {
    "a job in another shard": (
        lambda shards: put_job(shards, 0, "job:x", ONE),
        FindingKind.MISPLACED,
        "default: jobs/job:x",
        ("in shard default", f"tenant {ONE!r}'s in shard 0001", "submit it again"),
    ),
    "a finished job in another shard": (
        lambda shards: put_job(shards, 2, "job:x", "acme", "succeeded"),
        FindingKind.MISPLACED,
        "0002: jobs/job:x",
        ("in shard 0002", "tenant 'acme''s in shard default"),
    ),
    "a job in two shards": (
        lambda shards: put_job(shards, 2, "job:one", ONE, "failed"),
        FindingKind.MISPLACED,
        "0002: jobs/job:one",
        ("in shard 0002",),
    ),
    "a schedule in another shard": (
        reserved_schedule_elsewhere,
        FindingKind.MISPLACED,
        "default: schedules/tack",
        ("in shard default", "hascheduler schedule add"),
    ),
    "a schedule in two shards": (
        lambda shards: put_schedule(shards, 2, "tock", ONE),
        FindingKind.MISPLACED,
        "0002: schedules/tock",
        ("in shard 0002", f"tenant {ONE!r}'s in shard 0001"),
    ),
    "two schedules of one name, each in the shard of its tenant": (
        lambda shards: put_schedule(shards, 2, "tock", TWO),
        FindingKind.NAME_UNRESERVED,
        "0002: schedules/tock",
        (f"its tenant is {TWO!r}", f"reserved for {ONE!r}", "only in lists"),
    ),
    "a schedule without a reservation": (
        lambda shards: shards.databases[0].names.delete_one({"_id": "tock"}),
        FindingKind.NAME_UNRESERVED,
        "0001: schedules/tock",
        ("for nobody", "hascheduler schedule add"),
    ),
    "a schedule whose name is reserved for another tenant": (
        schedule_of_another_name,
        FindingKind.NAME_UNRESERVED,
        "0002: schedules/tack",
        (f"reserved for {ONE!r}",),
    ),
    "a reservation for nothing": (
        lambda shards: shards.reserve("gone", ONE),
        FindingKind.NAME_UNUSED,
        "default: names/gone",
        (f"for tenant {ONE!r}", "deleteOne({_id: 'gone'"),
    ),
    "a schedule is lost": (
        lambda shards: shards.databases[1].schedules.delete_one({"_id": "tock"}),
        FindingKind.NAME_UNUSED,
        "default: names/tock",
        ("its shard lost it",),
    ),
    "a reservation that can't be read, of a schedule that is there": (
        lambda shards: shards.databases[0].names.update_one({"_id": "tock"}, {"$set": {"use": "often"}}),
        FindingKind.UNREADABLE,
        "default: names/tock",
        ("use", "deleteOne"),
    ),
    "no routing": (
        lambda shards: shards.databases[0].routing.delete_many({}),
        FindingKind.UNREADABLE,
        "default: routing/routing",
        ("there is none", "backup"),
    ),
    "a routing that can't be read": (
        lambda shards: shards.databases[0].routing.update_one({}, {"$set": {"slots": [0, "x"]}}),
        FindingKind.UNREADABLE,
        "default: routing/routing",
        ("slots", "backup"),
    ),
    "a routing of other shards": (
        lambda shards: shards.databases[0].routing.update_one({}, {"$push": {"shards": "0003"}}),
        FindingKind.UNKNOWN_SHARD,
        "default: routing/routing",
        ("0003", "HASCHEDULER_SHARDS=4"),
    ),
}


@pytest.mark.parametrize("row", ROWS)
async def test_each_planted_defect_is_found_and_nothing_else(shards: Shards, row: str) -> None:
    plant, kind, document, words = ROWS[row]
    await plant(shards)
    for bounds in (AT_ONCE, replace(LIGHT, look_again_s=0.0)):
        report = await shards.look(bounds)
        assert keys(report.findings) == [(kind, document)]
        [finding] = report.findings
        assert all(word in f"{finding.what} {finding.hint}" for word in words), finding
        assert report.counts == {kind.value: 1}
        assert report.complete


async def test_one_shard_has_no_such_rules(shards: Shards) -> None:
    home = shards.healthy
    await put_job(shards, 0, "job:x", ONE)
    await put_schedule(shards, 0, "tack", ONE)
    await shards.reserve("gone", ONE)
    report = await home.scan().look(AT_ONCE)
    assert report.findings == ()
    assert not {"tenants of jobs", "schedules by shard", "names by shard"} & report.looked_at.keys()


async def edited(shards: Shards) -> None:
    """Within its slot, before the reservation followed it."""
    before, after = of_one_slot()
    index = ROUTING.index_of(after)
    await put_schedule(shards, index, "edited", after)
    await shards.reserve("edited", before)


KEPT: dict[str, Callable[[Shards], Awaitable[object]]] = {
    "a creation that has not come to its insert": lambda shards: shards.reserve("soon", ONE, 60_000),
    "by a clock that is ahead": lambda shards: shards.reserve("soon", ONE, -60_000),
    "a deleted schedule with a job": lambda shards: put_both(shards, "succeeded"),
    "a deleted schedule with a live job": lambda shards: put_both(shards, "pending"),
    "an edit to a tenant of the same slot": edited,
}


async def put_both(shards: Shards, state: str) -> None:
    """The jobs of an earlier schedule of that name may be of another tenant, in another shard."""
    await shards.reserve("gone", ONE)
    await put_job(shards, 2, f"fire:gone:{shards.healthy.now}", TWO, state, schedule="gone")


@pytest.mark.parametrize("row", KEPT)
async def test_a_reservation_that_is_kept_for_a_reason_is_no_finding(shards: Shards, row: str) -> None:
    await KEPT[row](shards)
    assert (await shards.look()).findings == ()


MOTIONS: dict[str, tuple[Callable[[Shards], Awaitable[object]], int, Callable[[Shards], Awaitable[object]]]] = {
    "a schedule is deleted while it is looked at": (
        lambda shards: shards.databases[0].names.delete_one({"_id": "tock"}),
        1,
        lambda shards: shards.databases[1].schedules.delete_one({"_id": "tock"}),
    ),
    "another schedule of that name is made": (
        lambda shards: shards.databases[0].names.delete_one({"_id": "tock"}),
        1,
        lambda shards: shards.databases[1].schedules.update_one({"_id": "tock"}, {"$set": {"created_at_ms": 7}}),
    ),
    "a name is released": (
        lambda shards: shards.reserve("gone", ONE),
        0,
        lambda shards: shards.databases[0].names.delete_one({"_id": "gone"}),
    ),
    "a name is reserved again": (
        lambda shards: shards.reserve("gone", ONE),
        0,
        lambda shards: shards.databases[0].names.update_one({"_id": "gone"}, {"$set": {"use": 2}}),
    ),
    "the schedule of a name is made": (
        lambda shards: shards.reserve("gone", ONE),
        0,
        lambda shards: put_schedule(shards, 1, "gone", ONE),
    ),
}


@pytest.mark.parametrize("row", MOTIONS)
async def test_what_changes_between_two_looks_is_no_finding(shards: Shards, row: str) -> None:
    plant, index, motion = MOTIONS[row]
    await plant(shards)
    assert len((await shards.scan(index).look(AT_ONCE)).findings) == 1
    scan = shards.scan(index, MovingScan)
    assert isinstance(scan, MovingScan)
    scan.motion = lambda: motion(shards)
    assert (await scan.look(AT_ONCE)).findings == ()


async def test_of_many_jobs_only_some_of_each_tenant_are_read_from_an_index(mongodb_uri: str, shards: Shards) -> None:
    home = shards.databases[0]
    for tenant in ("acme", "tenant"):
        await home.jobs.insert_many([shards.job(f"{tenant}:{number}", tenant, "succeeded") for number in range(2_000)])
    await put_job(shards, 0, "job:x", ONE)
    await shards.reserve("gone", ONE)
    commands = SentCommands()
    client: Client = Client(mongodb_uri, **CLIENT_OPTIONS, event_listeners=[commands])
    watched = Shards([open_database(client, database.name) for database in shards.databases], shards.healthy)
    for bounds in (replace(AT_ONCE, batch=100), replace(LIGHT, batch=100, look_again_s=0.0)):
        report = await watched.scan(0).look(bounds)
        assert set(keys(report.findings)) == {
            (FindingKind.MISPLACED, "jobs/job:x"),
            (FindingKind.NAME_UNUSED, "names/gone"),
        }
        assert report.looked_at["tenants of jobs"] <= 400
    await client.close()
    assert {next(iter(command)) for command in commands.sent} <= {
        "hello", "listCollections", "listIndexes", "find", "getMore", "killCursors", "endSessions",
    }  # fmt: skip
    finds = [command for command in commands.sent if "find" in command]
    assert {command["find"] for command in finds} >= {"routing", "names", "schedules", "jobs"}
    assert all(command["readConcern"]["level"] == "majority" for command in finds)
    for command in finds:
        if command["find"] in ("names", "schedules") or {"tenant", "schedule"} & command["filter"].keys():
            await demand_index(home, command)


async def test_a_leaders_looks_take_turns(shards: Shards) -> None:
    one = shards.databases[1]
    names = [f"s{number}" for number in range(6)]
    await one.schedules.insert_many([shards.schedule(name, ONE) for name in names])
    for name in names:
        await shards.reserve(f"{name}-gone", ONE)
    tenants = [f"t{number}" for number in range(64) if ROUTING.index_of(f"t{number}") == 2][:6]
    await one.jobs.insert_many([shards.job(f"job:{tenant}", tenant) for tenant in tenants])
    bounds = replace(LIGHT, batch=2, pause_s=0.0, look_again_s=0.0, placed_max=4, tenants_max=2)
    home, second = shards.scan(0), shards.scan(1)
    found: set[tuple[FindingKind, str]] = set()
    for turn in range(6):
        looked = [*(await home.look(bounds)).findings, *(await second.look(bounds)).findings]
        assert len(looked) <= 4 + 4 + 2
        found |= set(keys(looked))
        assert turn or len(found) < 18
    assert found == {
        *((FindingKind.NAME_UNRESERVED, f"schedules/{name}") for name in names),
        *((FindingKind.NAME_UNUSED, f"names/{name}-gone") for name in names),
        *((FindingKind.MISPLACED, f"jobs/job:{tenant}") for tenant in tenants),
    }


async def test_a_scan_out_of_time_is_incomplete_and_the_next_one_continues(shards: Shards) -> None:
    await shards.databases[2].jobs.insert_one(shards.job("job:x", ONE))
    scan = shards.scan(2)
    report = await scan.look(replace(LIGHT, limit_s=0.0, look_again_s=0.0))
    assert (report.complete, report.findings) == (False, ())
    assert keys((await scan.look(AT_ONCE)).findings) == [(FindingKind.MISPLACED, "jobs/job:x")]


@pytest.mark.parametrize("collection", [Collection.JOBS, Collection.SCHEDULES, Collection.NAMES, Collection.ROUTING])
async def test_mutated_documents_never_break_a_scan(shards: Shards, collection: Collection) -> None:
    random = Random(f"nonsense of shards {collection}")
    for number in range(100):
        index = random.randrange(3) if collection in (Collection.JOBS, Collection.SCHEDULES) else 0
        documents = shards.databases[index][collection.value]
        samples = await documents.find().limit(10).to_list(None) or [shards.schedule("x", ONE)]
        document = mutated(random, random.choice(samples))
        if isinstance(document.get("job"), dict) and random.random() < 0.5:
            document["job"] = mutated(random, document["job"])
        document["_id"] = f"m{number}" if random.random() < 0.8 else random.choice(IDS)
        if collection is Collection.ROUTING:
            document["_id"] = "routing"
        with suppress(WriteError):  # two arrays in one index
            await documents.replace_one({"_id": document["_id"]}, document, upsert=True)
        if collection is Collection.ROUTING and number % 10 == 0:
            assert (await shards.scan(0).look(AT_ONCE)).at_ms
    report = await shards.look(replace(AT_ONCE, batch=7))
    for finding in report.findings:
        assert finding.what
        assert finding.hint
        assert len(finding.document) < 400


async def test_the_command_goes_by_the_number_of_shards(mongodb_uri: str, database_name: str) -> None:
    async with connect(mongodb_uri) as client:
        names = [shard_database(database_name, index) for index in range(2)]
        try:
            for name in names:
                await ensure_collections_and_indexes(open_database(client, name))
            home, second = (open_database(client, name) for name in names)
            healthy = await Healthy.make(home)
            even = Routing(1, SHARDS[:2], tuple(0 if slot in _HOME_SLOTS else 1 for slot in range(256)))
            await home.routing.insert_one(encode_routing(even))
            await home.names.insert_one(encode_reserved_name(ReservedName("tick", "tenant", 1, WallMs(healthy.now))))
            ended = run(database_name, "--mongodb-uri", mongodb_uri, "--shards", "2")
            assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
            await second.jobs.insert_one(healthy.job("job:x", "succeeded"))
            ended = run(database_name, "--mongodb-uri", mongodb_uri, "--shards", "2")
            assert ended.returncode == 1
            assert "misplaced  0001: jobs/job:x" in ended.stdout
            assert "misplaced 1; " in ended.stdout
        finally:
            await client.drop_database(names[1])
