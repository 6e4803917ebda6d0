"""Explain why MongoDB can't be used: which address, what is wrong and what to do.

The driver's own errors list topologies, and call every cause a timeout. So this asks each address of the URI by itself,
without credentials, for its role. No text here holds a password.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pymongo import AsyncMongoClient
from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.uri_parser import parse_uri

from hascheduler.errors import InvalidInput, StoreUnavailable, Unreachable
from hascheduler.mongo.faults import described

ASKING = "ask the addresses of MongoDB"
_URI = ("HASCHEDULER_MONGODB_URI",)
_SRV = "mongodb+srv:"
_ANSWER_LIMIT_S = 1.2
_MEMBERS_ASKED_MAX = 7
_AUTHENTICATION_FAILED = 18
# The driver's prefix and suffix around the text of an error.
_HANDSHAKE, _TIMEOUTS = "SSL handshake failed: ", " (configured timeouts: "
_WORDS_MAX = 200


async def explained(doing: Callable[[], Awaitable[None]], uri: str, tls: Mapping[str, Any]) -> None:
    """Await ``doing``, which uses the database, and raise its `StoreUnavailable` with the cause if one is found.

    If no host has an address, ``doing`` is not begun. Otherwise the addresses are asked meanwhile, and a lasting cause
    ends ``doing``: the driver would search for a member of the set until its limit. It may outlast any other cause,
    such as an election.
    """
    if (nowhere := await _without_addresses(uri)) is not None:
        raise nowhere
    working = asyncio.ensure_future(doing())
    asking = asyncio.create_task(_find_cause(uri, tls), name=ASKING)
    try:
        await asyncio.wait([working, asking], return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and (cause := await asking) is not None and cause.stays:
            raise cause
        await working
    except Unreachable:
        raise
    except StoreUnavailable as error:
        raise _refusal(uri, error) or await asking or error from error
    finally:
        for task in (working, asking):
            task.cancel()
        await asyncio.wait([working, asking])


async def _without_addresses(uri: str) -> Unreachable | None:
    """Return the cause if the addresses of none of the hosts were found in time."""
    if uri.startswith(_SRV):
        return None
    nodes = parse_uri(uri, validate=False)["nodelist"][:_MEMBERS_ASKED_MAX]
    causes = await asyncio.gather(*(_resolve(host) for host, _ in nodes))
    found = [cause for cause in causes if cause is not None]
    return _error_of(found) if len(found) == len(nodes) else None


async def _resolve(host: str) -> "_Cause | None":
    """Resolve the host in a thread that the process does not wait for: a silent resolver would delay its end."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def finish(found: bool) -> None:
        if not answer.done():
            answer.set_result(found)

    def resolve() -> None:
        try:
            found = bool(socket.getaddrinfo(host, None))
        except (OSError, UnicodeError):
            found = False
        with suppress(RuntimeError):  # the loop may have ended meanwhile
            loop.call_soon_threadsafe(finish, found)

    threading.Thread(target=resolve, name=f"resolve {host}", daemon=True).start()
    try:
        async with asyncio.timeout(_ANSWER_LIMIT_S):
            if await answer:
                return None
    except TimeoutError:
        return _Cause(
            "the host {} can't be resolved: no answer", repr(host), "a resolver that answers, or an IP address"
        )
    return _no_address(host)


async def _find_cause(uri: str, tls: Mapping[str, Any]) -> Unreachable | None:
    if uri.startswith(_SRV):
        return None
    options = parse_uri(uri, validate=False)
    nodes, name = options["nodelist"][:_MEMBERS_ASKED_MAX], options["options"].get("replicaSet")
    with_tls = tls_options_of(uri, tls)
    causes = [cause for cause in await asyncio.gather(*(_ask(node, name, with_tls) for node in nodes)) if cause]
    # A lasting cause of one member is enough; otherwise all are named.
    return next((_error_of([cause]) for cause in causes if cause.stays), _error_of(causes) if causes else None)


def tls_options_of(uri: str, tls: Mapping[str, Any]) -> dict[str, Any]:
    """Return the URI's own options of TLS, with those of ``tls``: what a connection to one member needs."""
    if uri.startswith(_SRV):
        return {"tls": True, **tls}
    options = parse_uri(uri, validate=False)["options"]
    return {key: value for key, value in options.items() if key.lower().startswith(("tls", "ssl"))} | {**tls}


@dataclass(frozen=True, slots=True)
class _Cause:
    """A cause: ``problem`` has ``{}`` in place of ``where``; ``stays`` if waiting does not help."""

    problem: str
    where: str
    expected: str
    stays: bool = False


def _no_address(host: str) -> _Cause:
    return _Cause("there is no address for the host {}", repr(host), "a host name that this machine can resolve")


def _error_of(causes: Sequence[_Cause]) -> Unreachable:
    """Return the error in one line, which names each problem of several addresses once."""
    places: dict[str, list[str]] = {}
    for cause in causes:
        places.setdefault(cause.problem, []).append(cause.where)
    problems = "; ".join(problem.replace("{}", ", ".join(where), 1) for problem, where in places.items())
    return Unreachable(InvalidInput(_URI, problems, causes[0].expected), stays=causes[0].stays)


def _refusal(uri: str, error: StoreUnavailable) -> Unreachable | None:
    reason = error.__cause__
    if uri.startswith(_SRV):
        if not isinstance(reason, ConfigurationError):
            return None
        problem = f"the DNS records of {urlsplit(uri).hostname!r} can't be resolved"
        return _error_of(
            [_Cause(problem, "", "a host with SRV records for MongoDB, or mongodb://host:port/?replicaSet=name")]
        )
    if not (isinstance(reason, OperationFailure) and reason.code == _AUTHENTICATION_FAILED):
        return None
    options = parse_uri(uri, validate=False)
    who = f"user {options['username']!r}" if options["username"] else "this process, which gives no user"
    where = ", ".join(_address(node) for node in options["nodelist"][:_MEMBERS_ASKED_MAX])
    return _error_of([_Cause(f"{{}} refuses {who}", where, "a user that exists, its password, and its authSource")])


def require_replica_set(hello: Mapping[str, Any], address: tuple[str, int] | None) -> None:
    """Raise `InvalidInput` if the server that answered ``hello`` has no change stream."""
    cause = _of_hello(hello, _address(address or ("the server", None)), None)
    if cause is not None and cause.stays:
        raise _error_of([cause]).mistake


async def _ask(node: tuple[str, int | None], name: str | None, tls: Mapping[str, Any]) -> _Cause | None:
    host, port = node
    where = _address(node)
    try:
        async with asyncio.timeout(_ANSWER_LIMIT_S):
            _, writer = await asyncio.open_connection(host, port)
            writer.close()
    except socket.gaierror:
        return _no_address(host)
    except ConnectionRefusedError:
        return _Cause("nothing listens at {}", where, "the address of a running mongod")
    except TimeoutError:
        return _Cause("{} does not answer", where, "the address of a running mongod, and no firewall in between")
    except OSError as error:
        return _Cause(f"{{}} can't be reached ({error.strerror})", where, "the address of a running mongod")
    async with client_of_member(host, port, tls) as client:
        try:
            return _of_hello(await client.admin.command("hello"), where, name)
        except PyMongoError as error:
            reason: Exception | None = error
            if isinstance(error, ServerSelectionTimeoutError):
                [server] = client.topology_description.server_descriptions().values()
                reason = server.error
            return _of_failure(reason, where, with_tls=tls.get("tls", tls.get("ssl", bool(tls))))


@asynccontextmanager
async def client_of_member(
    host: str, port: int | None, tls: Mapping[str, Any]
) -> AsyncIterator[AsyncMongoClient[dict[str, Any]]]:
    """Open a client of that server alone, without credentials and with little patience."""
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
        host,
        port,
        directConnection=True,
        serverSelectionTimeoutMS=_ANSWER_LIMIT_S * 1_000,
        connectTimeoutMS=_ANSWER_LIMIT_S * 1_000,
        **tls,
    )
    try:
        yield client
    finally:
        await _close(client)


def _of_failure(error: Exception | None, where: str, *, with_tls: bool) -> _Cause:
    """Return why the server answered no ``hello``, in its own words if it gave some; without ``error`` it timed out."""
    handshake, words = str(error).startswith(_HANDSHAKE), str(error).partition(_TIMEOUTS)[0]
    words = " ".join(words.removeprefix(_HANDSHAKE).removeprefix(f"{where}:").split())[:_WORDS_MAX]
    match error:
        case None | NetworkTimeout():
            problem, expected = "accepts the connection, but does not answer", "a mongod that responds"
        case OperationFailure():
            problem, expected = f"answers with an error: {described(error)}", "a mongod that answers `hello`"
        case ConfigurationError():
            problem, expected = f"can't be used: {words}", "a supported version of MongoDB"
        case ConnectionFailure() if "CERTIFICATE_VERIFY_FAILED" in words:
            problem = f"has a certificate that this process does not trust: {words}"
            expected = "the CA file of its issuer, and a host that the certificate names"
        case ConnectionFailure() if "[SSL" in words:
            problem, expected = f"can't agree on TLS with this process: {words}", "tls=true only if mongod uses TLS"
        case ConnectionFailure() if handshake or with_tls:
            problem = f"closes the connection during or after the TLS handshake{words and f': {words}'}"
            expected = "a mongod with TLS, and the client certificate that it requires"
        case ConnectionFailure():
            problem, expected = f"closes the connection: {words}", "a mongod, and tls=true in the URI if it uses TLS"
        case _:
            problem, expected = f"does not speak the MongoDB protocol: {words}", "the address of a mongod"
    return _Cause(f"{{}} {problem}", where, expected)


async def _close(client: AsyncMongoClient[dict[str, Any]]) -> None:
    """Close the client completely, even if the task is cancelled meanwhile: a partial close keeps its connections."""
    closing = asyncio.create_task(client.close())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait([closing])
        raise


def _of_hello(hello: Mapping[str, Any], where: str, name: str | None) -> _Cause | None:
    own = hello.get("setName")
    if own is None and hello.get("msg") == "isdbgrid":
        return None
    if own is None and hello.get("isreplicaset"):
        return _Cause(
            "the replica set of {} is not initiated", where, "rs.initiate() there, or `hascheduler bootstrap`"
        )
    if own is None:
        start = f"mongod with --replSet {name or 'rs0'}"
        return _Cause(
            f"{{}} is not a member of a replica set: start {start}",
            where,
            "a replica set, and rs.initiate() once",
            stays=True,
        )
    if name is not None and own != name:
        return _Cause(
            f"{{}} is a member of the replica set {own!r}, not of {name!r}",
            where,
            f"replicaSet={own} in the URI",
            stays=True,
        )
    if not hello.get("isWritablePrimary") and not hello.get("primary"):
        return _Cause(
            f"the replica set {own!r} has no primary, according to {{}}", where, "a majority of its members running"
        )
    return None


def _address(node: tuple[str, int | None]) -> str:
    host, port = node
    return host if port is None else f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
