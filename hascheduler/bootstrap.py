"""Prepares a MongoDB for a deployment: initiates and grows its replica set, and makes its users.

A run asks every member, takes the next step, and asks all again until nothing is left to do. Repeated and concurrent
runs change nothing that is already right, and never remove a member, a user or data. A set is initiated only after
every member answered that it belongs to none: a silent one may hold the data of another.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote_plus

import structlog
from pymongo.errors import OperationFailure
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random

from hascheduler.errors import Conflict, InvalidInput, StoreUnavailable
from hascheduler.mongo.connection import Client, connect
from hascheduler.mongo.faults import faults
from hascheduler.mongo.schema.privileges import PRIVILEGES

log = structlog.get_logger(__name__)

_AUTHENTICATION_FAILED, _ALREADY_INITIALIZED, _NOT_YET_INITIALIZED = 18, 23, 94
_ANSWER_LIMIT_S, _CHANGE_LIMIT_S = 4.0, 20.0
_MAJORITY = {"w": "majority", "wtimeout": 10_000}


@dataclass(frozen=True, slots=True)
class DatabasePlan:
    """The plan of a deployment's MongoDB.

    ``members`` are sorted, so that concurrent runs initiate on the same one. The first of ``databases`` holds the
    users. ``passwords`` are those of scheduler, processor and admin.
    """

    members: Sequence[str]
    replica_set: str
    databases: Sequence[str]
    key: str
    passwords: Mapping[str, str]
    timeout_ms: int
    tls_ca_file: str = ""
    tls_cert_file: str = ""


class _Member(NamedTuple):
    host: str
    configuration: Mapping[str, Any] | None
    primary: str | None


async def bootstrap_mongodb(plan: DatabasePlan) -> None:
    """Make the replica set with all its members, and its users; raise `StoreUnavailable` if that takes too long."""
    run = _BootstrapRun(plan)
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_random(0.2, 1.0),  # so that concurrent runs do not collide for ever
        stop=stop_after_delay(plan.timeout_ms / 1_000),
        reraise=True,
    ):
        with attempt:
            await run.round()


class _BootstrapRun:
    """Owner of what was logged and done, so that each state is logged once."""

    def __init__(self, plan: DatabasePlan) -> None:
        self._plan = plan
        self._logged = ""
        self._users_made = False

    async def round(self) -> None:
        """Return if all is done; else take the next step and raise `StoreUnavailable` with what is missing."""
        plan = self._plan
        answers = [one for one in await asyncio.gather(*(_ask(plan, host) for host in plan.members)) if one is not None]
        silent = set(plan.members) - {member.host for member in answers}
        holders = [member for member in answers if member.configuration is not None]
        if not holders and silent:
            raise self._missing(f"no answer yet from {', '.join(sorted(silent))}")
        if not holders:
            await _initiate(plan)
            raise self._missing("the set has no primary")
        present = _demand_one_set(holders)
        known = [(member.primary != member.host, member.primary) for member in holders if member.primary]
        if not known:
            raise self._missing("the set has no primary")
        _, primary = min(known)  # first one that reports itself as the leader
        missing = [host for host in plan.members if not any(is_same_member(host, own) for own in present)]
        async with _as_member(plan, primary) as client:
            # Before a late member arrives, as clients need only a primary.
            if not self._users_made:
                log.info("users_ready", **await _ensure_users(plan, client, primary))
                self._users_made = True
            for host in missing:
                if host not in silent:
                    await _add_member(client, host)
        if awaited := silent & set(missing):
            raise self._missing(f"no answer yet from {', '.join(sorted(awaited))}")
        log.info("replica_set_ready", set=plan.replica_set, primary=primary)

    def _missing(self, what: str) -> StoreUnavailable:
        if what != self._logged:
            log.info("bootstrap_waiting", reason=what)
            self._logged = what
        return StoreUnavailable(f"the replica set {self._plan.replica_set} is not there in time: {what}")


async def _ask(plan: DatabasePlan, host: str) -> _Member | None:
    """Return the member's answer, or None if it does not answer."""
    try:
        async with _as_member(plan, host) as client:
            with faults("ask a member", _ANSWER_LIMIT_S):
                options = (await client.admin.command("getCmdLineOpts"))["parsed"].get("replication", {})
                name = str(options.get("replSet") or options.get("replSetName") or "no replica set")
                if name != plan.replica_set:
                    raise InvalidInput(("--set",), f"{host} was started for {name}", f"--replSet {plan.replica_set}")
                hello = await client.admin.command("hello")
                try:
                    configuration = (await client.admin.command("replSetGetConfig"))["config"]
                except OperationFailure as error:
                    if error.code != _NOT_YET_INITIALIZED:
                        raise
                    configuration = None
    except StoreUnavailable:
        return None
    primary = host if hello["isWritablePrimary"] else hello.get("primary")
    return _Member(host, configuration, primary)


@asynccontextmanager
async def _connected(plan: DatabasePlan, host: str, credentials: str, options: str) -> AsyncIterator[Client | None]:
    """Connect to that member alone; return None if it does not accept the password."""
    uri = f"mongodb://{credentials}@{host}/?directConnection=true&{options}"
    client = connect(uri, tls_ca_file=plan.tls_ca_file, tls_cert_file=plan.tls_cert_file)
    try:
        gets_in = True
        with faults("reach a member", _ANSWER_LIMIT_S):
            try:
                await client.admin.command("ping")
            except OperationFailure as error:
                if error.code != _AUTHENTICATION_FAILED:
                    raise
                gets_in = False
        yield client if gets_in else None
    finally:
        await client.close()


@asynccontextmanager
async def _as_member(plan: DatabasePlan, host: str) -> AsyncIterator[Client]:
    """Connect as other members do, by their common key: this user exists before any other, even without a set."""
    options = "authSource=local&authMechanism=SCRAM-SHA-256"
    async with _connected(plan, host, f"__system:{quote_plus(plan.key)}", options) as client:
        if client is None:
            raise InvalidInput(("--keyfile",), f"{host} does not take this key", "the one that it was started with")
        yield client


async def _initiate(plan: DatabasePlan) -> None:
    """Initiate the set with one member, which leads at once; the next rounds add the others."""
    host = plan.members[0]
    configuration = {"_id": plan.replica_set, "members": [{"_id": 0, "host": host}]}
    async with _as_member(plan, host) as client:
        with faults("initiate the replica set", _CHANGE_LIMIT_S):
            try:
                await client.admin.command({"replSetInitiate": configuration})
            except OperationFailure as error:
                if error.code != _ALREADY_INITIALIZED:
                    raise
    log.info("replica_set_initiated", set=plan.replica_set, member=host)


async def _add_member(client: Client, host: str) -> None:
    """Add the member to the set that the client's member leads; it has no vote until it has the data."""
    with faults(f"add {host}", _CHANGE_LIMIT_S):
        configuration = (await client.admin.command("replSetGetConfig"))["config"]
        members = configuration["members"]
        if any(member["host"] == host for member in members):
            return
        added = {"_id": 1 + max(member["_id"] for member in members), "host": host}
        # The version admits one of several concurrent runs; the others retry.
        changed = {**configuration, "version": configuration["version"] + 1, "members": [*members, added]}
        await client.admin.command({"replSetReconfig": changed})
    log.info("member_added", member=host)


def _demand_one_set(holders: Sequence[_Member]) -> set[str]:
    """Return the names of its members, from the newest configuration."""
    held = [(member.host, member.configuration) for member in holders if member.configuration is not None]
    hosts = {configuration["settings"]["replicaSetId"]: host for host, configuration in held}
    if len(hosts) > 1:
        raise Conflict(
            f"{' and '.join(hosts.values())} belong to two sets of the same name, each with its own data; take out the"
            " one that is not meant, or empty its disk"
        )
    newest = max((one for _, one in held), key=lambda one: (one.get("term", 0), one["version"]))
    return {member["host"] for member in newest["members"]}


def is_same_member(wanted: str, own: str) -> bool:
    """Return True if the set's own name is the wanted one, alone or with a domain, as in sets that 0.2.0 made."""
    (host, _, port), (own_host, _, own_port) = wanted.rpartition(":"), own.rpartition(":")
    return port == own_port and (own_host == host or own_host.startswith(f"{host}."))


async def _ensure_users(plan: DatabasePlan, client: Client, primary: str) -> Mapping[str, str]:
    """Make the missing users, change those that differ, and return the action for each."""
    done = {}
    with faults("make the users", _CHANGE_LIMIT_S):
        for name in plan.passwords:
            changes = [await _ensure_role(client, database, name) for database in plan.databases if name != "admin"]
            changes.append(await _ensure_user(plan, client, primary, name))
            done[name] = next((change for change in reversed(changes) if change != "unchanged"), "unchanged")
    return done


async def _ensure_role(client: Client, database: str, name: str) -> str:
    wanted = [
        {"resource": {"db": database, "collection": str(collection)}, "actions": sorted(actions)}
        for collection, actions in PRIVILEGES[name].items()
    ]
    asked = {"rolesInfo": {"role": name, "db": database}, "showPrivileges": True}
    found = (await client[database].command(asked))["roles"]
    if found and not found[0]["roles"] and _compared(found[0]["privileges"]) == _compared(wanted):
        return "unchanged"
    verb = "updateRole" if found else "createRole"
    await client[database].command({verb: name, "privileges": wanted, "roles": [], "writeConcern": _MAJORITY})
    return "changed" if found else "created"


def _compared(privileges: Sequence[Mapping[str, Any]]) -> set[tuple[Any, Any, frozenset[str]]]:
    places = [(one["resource"], one["actions"]) for one in privileges]
    return {(place.get("db"), place.get("collection"), frozenset(actions)) for place, actions in places}


async def _ensure_user(plan: DatabasePlan, client: Client, primary: str, name: str) -> str:
    """Give the user its role in all databases; do not write a password again that is already right."""
    role, databases = ("root", ["admin"]) if name == "admin" else (name, plan.databases)
    home, password = databases[0], plan.passwords[name]
    found = (await client[home].command({"usersInfo": name}))["users"]
    if found and {(one["role"], one["db"]) for one in found[0]["roles"]} == {
        (role, database) for database in databases
    }:
        async with _connected(plan, primary, f"{name}:{quote_plus(password)}", f"authSource={home}") as as_user:
            if as_user is not None:
                return "unchanged"
    roles = [{"role": role, "db": database} for database in databases]
    verb = "updateUser" if found else "createUser"
    await client[home].command({verb: name, "pwd": password, "roles": roles, "writeConcern": _MAJORITY})
    return "changed" if found else "created"
