"""Examine a MongoDB before a deployment uses it, or when it behaves oddly. It writes nothing.

Each examination stands alone, with its own time limit: one that is not allowed, or gets no answer, is reported as that,
and the others go on. What needs a right that replicas do not need (the oplog, server parameters) is `UNKNOWN` without
it.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bson import Timestamp
from pymongo.errors import OperationFailure, PyMongoError

from hascheduler.check.servers import Requirement, RequirementState, missing_privileges
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.values.instants import format_duration
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.mongo.connection import Database, awaited
from hascheduler.mongo.faults import faults, translated
from hascheduler.mongo.replicas import REPLICA_KEPT_MS
from hascheduler.mongo.schema.indexes import reach
from hascheduler.mongo.schema.privileges import PRIVILEGES
from hascheduler.mongo.unreachable import client_of_member, explained, tls_options_of

_LIMIT_S = 5.0
_MEMBERS_MAX = 7
_UNAUTHORIZED, _NOT_ALLOWED = 13, 8000
_TESTED_SINCE = (6, 0)
_MAJORITY_LAG_MAX_MS = 5_000
_CLOCK_OFF_MAX_MS = 1_000
_OPLOG_MIN_H = 24
_ALIVE_MS = 30_000

_BEYOND_RIGHTS = ("TTL", "oplog")
"""What needs more rights to see than replicas have."""

_MET, _WARNING = RequirementState.MET, RequirementState.WARNING
_MISSING, _UNKNOWN = RequirementState.MISSING, RequirementState.UNKNOWN


class _Found(NamedTuple):
    state: RequirementState
    text: str
    remedy: str = ""


async def examine_database(
    database: Database, uri: str, tls: Mapping[str, Any], server: str
) -> AsyncIterator[Requirement]:
    """Yield what the MongoDB at ``uri`` has of what ``database`` needs; only the first if it can't be reached."""
    try:
        await explained(lambda: reach(database), uri, tls)
        with faults("ask for the role"):
            hello = await database.command("hello")
    except (StoreUnavailable, InvalidInput) as error:
        # The name of the variable is right only if the URI comes from it.
        yield Requirement(server, "connection", _MISSING, str(error).removeprefix("HASCHEDULER_MONGODB_URI: "))
        return
    yield Requirement(server, "connection", _MET, "answers, and accepts these credentials")
    examinations: dict[str, Callable[[], Awaitable[_Found]]] = {
        "replica set": lambda: _replica_set(hello),
        "version": lambda: _version(database),
        "majority": lambda: _majority(hello),
        "change stream": lambda: _change_stream(database),
        "transactions": lambda: _transactions(database),
        "rights": lambda: _rights(database),
        "TTL": lambda: _ttl(database),
        "oplog": lambda: _oplog(database),
        "clocks": lambda: _clocks(hello, uri, tls),
        "time-zone data": lambda: _zone_data(database),
    }
    for what, examine in examinations.items():
        yield Requirement(server, what, *await _examined(what, examine))


async def _examined(what: str, examine: Callable[[], Awaitable[_Found]]) -> _Found:
    try:
        with translated(f"examine the {what}"):
            async with asyncio.timeout(_LIMIT_S):
                return await examine()
    except StoreUnavailable as error:
        reason = error.__cause__
        if isinstance(reason, OperationFailure) and reason.code in (_UNAUTHORIZED, _NOT_ALLOWED):
            role = "clusterMonitor, and read on the database local" if what in _BEYOND_RIGHTS else "of replicas"
            return _Found(_UNKNOWN, "this user may not see it", f"a user with the role {role}")
        return _Found(_MISSING, str(error))


async def _replica_set(hello: Mapping[str, Any]) -> _Found:
    if hello.get("msg") == "isdbgrid":
        return _Found(_MET, "a sharded cluster, asked through mongos")
    members = [*hello.get("hosts", ()), *hello.get("passives", ())]
    text = f"{hello['setName']}, members with data: {len(members)}"
    if len(members) < 3:
        return _Found(_WARNING, text, "three members in production: with fewer, one that is lost stops the writes")
    return _Found(_MET, text)


async def _version(database: Database) -> _Found:
    built = await database.client.admin.command("buildInfo")
    if tuple(built["versionArray"][:2]) < _TESTED_SINCE:
        oldest = ".".join(map(str, _TESTED_SINCE))
        return _Found(_WARNING, built["version"], f"MongoDB {oldest} or later: older ones are not tested")
    return _Found(_MET, built["version"])


async def _majority(hello: Mapping[str, Any]) -> _Found:
    """Compare the last write with the last one that a majority has."""
    last = hello.get("lastWrite", {})
    if "majorityWriteDate" not in last:
        return _Found(_UNKNOWN, "not reported, as through mongos")
    behind_ms = (last["lastWriteDate"] - last["majorityWriteDate"]) / timedelta(milliseconds=1)
    text = f"{format_duration(round(behind_ms))} behind the primary"
    if behind_ms > _MAJORITY_LAG_MAX_MS:
        return _Found(_MISSING, text, "a majority of members that keep up: each write waits for them")
    return _Found(_MET, text)


async def _change_stream(database: Database) -> _Found:
    async with await awaited(database.watch(max_await_time_ms=100)) as stream:
        await stream.try_next()
    return _Found(_MET, f"opens on {database.name}")


async def _transactions(database: Database) -> _Found:
    async with await awaited(database.client.start_session()) as session, await awaited(session.start_transaction()):
        await database[Collection.META.value].find_one({}, session=session)
    return _Found(_MET, "can be used")


async def _rights(database: Database) -> _Found:
    command = {"connectionStatus": 1, "showPrivileges": True}
    status = (await database.command(command))["authInfo"]
    if not status["authenticatedUsers"]:
        return _Found(_WARNING, "everybody may do everything", "start mongod with --auth or --keyFile")
    given: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
    for privilege in status["authenticatedUserPrivileges"]:
        place = privilege["resource"]
        if place.get("anyResource") or place.get("db") in ("", database.name):
            given[place.get("collection", "")] |= frozenset(privilege["actions"])
    missing = {role: missing_privileges(needed, given) for role, needed in PRIVILEGES.items()}
    allowed = [role for role, lacks in missing.items() if not lacks]
    if "scheduler" in allowed:
        return _Found(_MET, "enough for replicas and processors")
    lacks = f"the user of replicas lacks {', '.join(missing['scheduler'])}"
    if allowed:
        return _Found(_WARNING, f"enough for processors only; {lacks}", "another user for replicas")
    return _Found(_MISSING, lacks, "grant it, or let `hascheduler bootstrap mongodb` create the users")


async def _ttl(database: Database) -> _Found:
    answer = await database.client.admin.command({"getParameter": 1, "ttlMonitorEnabled": 1})
    if not answer["ttlMonitorEnabled"]:
        return _Found(_MISSING, "expired documents stay for ever", "setParameter ttlMonitorEnabled: true")
    return _Found(_MET, "expired documents are deleted")


async def _oplog(database: Database) -> _Found:
    oplog = database.client["local"]["oplog.rs"]
    ends: list[Timestamp] = []
    for direction in (1, -1):
        entry = await oplog.find_one({}, {"ts": 1}, sort=[("$natural", direction)])
        if entry is None:
            return _Found(_UNKNOWN, "there is none, as through mongos")
        ends.append(entry["ts"])
    hours = (ends[1].time - ends[0].time) / 3_600
    stats = await database.client["local"].command({"collStats": "oplog.rs"})
    if stats["size"] < stats["maxSize"] / 2:
        return _Found(_MET, f"{hours:.1f} h, and not half full")
    if hours < _OPLOG_MIN_H:
        remedy = "a larger oplog (replSetResizeOplog): who was away for longer has to read all documents again"
        return _Found(_WARNING, f"only {hours:.1f} h", remedy)
    return _Found(_MET, f"{hours:.1f} h")


async def _clocks(hello: Mapping[str, Any], uri: str, tls: Mapping[str, Any]) -> _Found:
    hosts = hello.get("hosts", ())[:_MEMBERS_MAX]
    if not hosts:
        return _Found(_UNKNOWN, "mongos does not name the members")
    options = tls_options_of(uri, tls)
    off_ms = await asyncio.gather(*(_clock_off_ms(host, options) for host in hosts))
    shown = [
        f"{host} does not answer" if each is None else f"{host} {each:+,} ms"
        for host, each in zip(hosts, off_ms, strict=True)
    ]
    text = f"ahead of this machine's: {', '.join(shown)}"
    if None in off_ms:
        return _Found(_UNKNOWN, text, "run it where all members can be reached")
    if any(each is not None and abs(each) > _CLOCK_OFF_MAX_MS for each in off_ms):
        return _Found(_WARNING, text, "NTP on all hosts, this one too: a replica whose clock is wrong does not lead")
    return _Found(_MET, text)


async def _clock_off_ms(host: str, tls: Mapping[str, Any]) -> int | None:
    """Return how far the member's clock is ahead of this machine's; None if it does not answer."""
    async with client_of_member(host, None, tls) as client:
        try:
            await client.admin.command("ping")  # so that the next exchange opens no connection
            before = datetime.now(UTC)
            its_own: datetime = (await client.admin.command("hello"))["localTime"].replace(tzinfo=UTC)
            after = datetime.now(UTC)
        except PyMongoError:
            return None
    return round((its_own - before - (after - before) / 2) / timedelta(milliseconds=1))


async def _zone_data(database: Database) -> _Found:
    """Compare the time-zone data of the replicas that are alive, and of this machine."""
    alive_after = datetime.now(UTC) + timedelta(milliseconds=REPLICA_KEPT_MS - _ALIVE_MS)
    cursor = database[Collection.REPLICAS.value].find({"expire_at": {"$gt": alive_after}}, {"name": 1, "zone_data": 1})
    hosts: defaultdict[str, list[str]] = defaultdict(list)
    async for document in cursor.limit(100):
        hosts[str(document.get("zone_data"))].append(str(document.get("name")))
    hosts[ZONE_DATA_VERSION].append("this machine")
    text = "; ".join(f"{release}: {', '.join(sorted(names))}" for release, names in sorted(hosts.items()))
    if len(hosts) > 1:
        return _Found(_WARNING, text, "the same release of the package tzdata on all of them")
    return _Found(_MET, text)
