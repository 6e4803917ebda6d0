"""One member of a replica set, asked directly, as one member asks another: with the key that they share.

``__system`` is the user that MongoDB's own members are. It exists before any other does, on a member without a set too.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from pymongo.errors import OperationFailure

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.mongo.connection import Client, connect
from hascheduler.mongo.faults import faults

AUTHENTICATION_FAILED = 18
_NOT_YET_INITIALIZED = 94
_ANSWER_LIMIT_S = 4.0


@dataclass(frozen=True, slots=True)
class MemberAccess:
    """How members are reached."""

    key: str
    tls_ca_file: str = ""
    tls_cert_file: str = ""


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """A member's answer: the configuration that it holds, if any, its own name in that, and the primary."""

    host: str
    configuration: Mapping[str, Any] | None
    known_as: str | None
    is_primary: bool
    primary: str | None

    @property
    def set_id(self) -> Any:
        """Tells a set from any other of the same name; None without a configuration."""
        return None if self.configuration is None else self.configuration["settings"]["replicaSetId"]


async def ask_member(host: str, access: MemberAccess, replica_set: str) -> MemberStatus | None:
    """The member, or None while it does not answer. `InvalidInput` where waiting would not help: it takes another key,
    or was started for another set, or for none."""
    try:
        async with as_member(host, access) as client:
            with faults("ask a member", _ANSWER_LIMIT_S):
                await _demand_set(client, host, replica_set)
                hello = await client.admin.command("hello")
                configuration = await _configuration(client)
    except StoreUnavailable:
        return None
    return MemberStatus(
        host,
        configuration,
        known_as=hello.get("me"),
        is_primary=hello["isWritablePrimary"],
        primary=hello.get("primary"),
    )


@asynccontextmanager
async def as_member(host: str, access: MemberAccess) -> AsyncIterator[Client]:
    """A client of that member alone, known to it by the key; `InvalidInput` if the member has another one."""
    uri = (
        f"mongodb://__system:{quote_plus(access.key)}@{host}/?directConnection=true&authSource=local"
        "&authMechanism=SCRAM-SHA-256"
    )
    client = connect(uri, tls_ca_file=access.tls_ca_file, tls_cert_file=access.tls_cert_file)
    try:
        with faults("reach a member", _ANSWER_LIMIT_S):
            try:
                await client.admin.command("ping")
            except OperationFailure as error:
                if error.code == AUTHENTICATION_FAILED:
                    raise InvalidInput(
                        ("--keyfile",), f"{host} does not take this key", "the one that it was started with"
                    ) from None
                raise
        yield client
    finally:
        await client.close()


async def _demand_set(client: Client, host: str, replica_set: str) -> None:
    options = (await client.admin.command("getCmdLineOpts"))["parsed"].get("replication", {})
    name = str(options.get("replSet") or options.get("replSetName") or "").partition("/")[0]
    if name != replica_set:
        problem = f"{host} was started for {name}" if name else f"{host} was started for no replica set"
        raise InvalidInput(("--set",), problem, f"mongod --replSet {replica_set}")


async def _configuration(client: Client) -> Mapping[str, Any] | None:
    try:
        configuration: Mapping[str, Any] = (await client.admin.command("replSetGetConfig"))["config"]
    except OperationFailure as error:
        if error.code == _NOT_YET_INITIALIZED:
            return None
        raise
    return configuration
