"""The users of MongoDB and their roles: made where they are missing, changed where they differ, else left alone.

===========  =====================================================================================================
user         may
===========  =====================================================================================================
scheduler    read, write and watch the whole database, make its collections and indexes, and drop indexes of those
             collections that have superseded ones (all for its migration too); never drop a collection or change its
             options, or touch another database
processor    read, change and watch jobs; read definitions, the schema version and how many shards there are; register,
             show life, deregister
admin        everything, for people (it belongs to the database ``admin``)
===========  =====================================================================================================

The rights were found by running everything under these users. A processor's user sees all jobs and can change each of
them, since MongoDB knows no rights on single documents and a view can neither be written nor watched. It reads
definitions for how often a job that failed is tried again. Scripts in the server (``$where``, ``$function``,
``mapReduce``) are off in every mongod that we configure: any right to read would be a right to run them. Where handlers
are not trusted, let them take their work over HTTP (``/v1/work``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import quote_plus

from pymongo.errors import OperationFailure

from hascheduler.bootstrap.broker_definitions import PROCESSOR_USER, SCHEDULER_USER
from hascheduler.bootstrap.inputs import Passwords
from hascheduler.bootstrap.member import AUTHENTICATION_FAILED, MemberAccess
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Client, connect
from hascheduler.mongo.faults import faults
from hascheduler.mongo.schema.indexes import SUPERSEDED

_ADMIN_DATABASE = "admin"
_MAJORITY = {"w": "majority", "wtimeout": 10_000}
_LIMIT_S = 15.0
ADMIN_USER = "admin"
_WRITE = ("find", "insert", "update", "remove")
# The empty name means every collection of the database, and the database itself.
PRIVILEGES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    SCHEDULER_USER: {
        "": (
            *_WRITE, "changeStream", "listCollections", "listIndexes", "createCollection", "createIndex",
        ),
        **dict.fromkeys(SUPERSEDED, ("dropIndex",)),
    },
    PROCESSOR_USER: {
        Collection.JOBS: ("find", "update", "changeStream"),
        Collection.DEFINITIONS: ("find",),
        Collection.META: ("find",),
        Collection.ROUTING: ("find",),
        Collection.PROCESSORS: _WRITE,
    },
}  # fmt: skip


class UserChange(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


async def ensure_users(
    client: Client, host: str, access: MemberAccess, databases: Sequence[str], passwords: Passwords
) -> Mapping[str, UserChange]:
    """What was done for each user; ``client`` asks the primary, which is ``host``. The users are kept in the first of
    ``databases``, those of the shards, and have their rights in all.

    `StoreUnavailable` where the primary is none any more, or another run did the same at this moment: try again.
    """
    home = databases[0]
    users = (
        _User(SCHEDULER_USER, home, passwords.scheduler, [(SCHEDULER_USER, database) for database in databases]),
        _User(PROCESSOR_USER, home, passwords.processor, [(PROCESSOR_USER, database) for database in databases]),
        _User(ADMIN_USER, _ADMIN_DATABASE, passwords.admin, [("root", _ADMIN_DATABASE)]),
    )
    done: dict[str, UserChange] = {}
    with faults("make the users", _LIMIT_S):
        for user in users:
            changes = [
                await _ensure_role(client, database, role)
                for role, database in user.roles
                if database != _ADMIN_DATABASE
            ]
            changes.append(await _ensure_user(client, user, host, access))
            made = [change for change in changes if change is not UserChange.UNCHANGED]
            done[user.name] = made[-1] if made else UserChange.UNCHANGED
    return done


@dataclass(frozen=True, slots=True)
class _User:
    """Each of its ``roles`` with the database that has it."""

    name: str
    database: str
    password: str
    roles: Sequence[tuple[str, str]]


async def _ensure_role(client: Client, database: str, name: str) -> UserChange:
    wanted = privileges(name, database)
    asked = {"rolesInfo": {"role": name, "db": database}, "showPrivileges": True}
    found = (await client[database].command(asked))["roles"]
    if found and not found[0]["roles"] and _compared(found[0]["privileges"]) == _compared(wanted):
        return UserChange.UNCHANGED
    verb, change = ("updateRole", UserChange.CHANGED) if found else ("createRole", UserChange.CREATED)
    await client[database].command({verb: name, "privileges": wanted, "roles": [], "writeConcern": _MAJORITY})
    return change


async def _ensure_user(client: Client, user: _User, host: str, access: MemberAccess) -> UserChange:
    database = client[user.database]
    roles = [{"role": role, "db": database} for role, database in user.roles]
    found = (await database.command({"usersInfo": user.name}))["users"]
    if not found:
        verb, change = "createUser", UserChange.CREATED
    elif _same_roles(found[0]["roles"], roles) and await _gets_in(user, host, access):
        return UserChange.UNCHANGED
    else:
        verb, change = "updateUser", UserChange.CHANGED
    await database.command({verb: user.name, "pwd": user.password, "roles": roles, "writeConcern": _MAJORITY})
    return change


def _same_roles(one: list[dict[str, str]], other: list[dict[str, str]]) -> bool:
    return {(role["role"], role["db"]) for role in one} == {(role["role"], role["db"]) for role in other}


async def _gets_in(user: _User, host: str, access: MemberAccess) -> bool:
    """Whether the password is right already: then it is not written again, and a second run changes nothing at all."""
    uri = f"mongodb://{user.name}:{quote_plus(user.password)}@{host}/?directConnection=true&authSource={user.database}"
    client = connect(uri, tls_ca_file=access.tls_ca_file, tls_cert_file=access.tls_cert_file)
    try:
        await client[user.database].command("ping")
    except OperationFailure as error:
        if error.code != AUTHENTICATION_FAILED:
            raise
        return False
    finally:
        await client.close()
    return True


def _compared(found: list[dict[str, Any]]) -> set[tuple[str, str, frozenset[str]]]:
    return {
        (one["resource"].get("db", ""), one["resource"].get("collection", ""), frozenset(one["actions"]))
        for one in found
    }


def privileges(role: str, database: str) -> list[dict[str, Any]]:
    """As ``createRole`` takes them."""
    return [
        {"resource": {"db": database, "collection": str(collection)}, "actions": sorted(actions)}
        for collection, actions in PRIVILEGES[role].items()
    ]
