"""One shard as this process reaches it: the routes of its API if it is hosted here, else a replica that hosts it.

::

    request ─► Hosted ─┬─► hosted here: the routes, with the services of that shard
                       └─► Peers ─► another replica: identifies, charges and answers ─► none: 503 with the shard's name

The whole request is passed on unchanged: the caller shows its own token there, and is authorized there as here.

* A request is passed on once: `ONE_SHARD` names the shard, and a replica that does not host it answers 503 with
  `NOT_HOSTED`. Then the next one is asked. A client that sends that header itself gets the same, and nothing else.
* Requests go only to addresses that replicas wrote into the shard's own database, and only with the headers
  `PASSED_ON`.
* Requests under way are bounded (the limit ``forwarded``), have the request's time limit, and end when the client
  leaves. An answer is passed on piece by piece.
* A request that may have been carried out is not sent again: another replica is asked if no connection was made, if the
  one that was asked answers that it did nothing, or if the request only reads.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Protocol, TypeVar

import httpx2
import structlog
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hascheduler.api.http.limits import FORWARDED_MAX, holding_of
from hascheduler.api.http.problems import ProblemError, problem
from hascheduler.api.middleware.audit import known_request_id, note_of
from hascheduler.api.middleware.overload import long_request_s_max, outcome_unknown, time_limit_s
from hascheduler.api.routing.long_poll import until_left
from hascheduler.api.routing.route_rules import BODY_BYTES_MAX, LARGE_BODY_BYTES_MAX, receive_bounded
from hascheduler.api.services import ApiServices
from hascheduler.errors import StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults

ONE_SHARD = b"x-hascheduler-shard"
"""The header that names the only shard that may answer: a replica sends it to another, or a person does."""
NOT_HOSTED = b"x-hascheduler-not-hosted"
"""The header of a 503 by a replica that does not host the shard that `ONE_SHARD` names: nothing was done."""

_T = TypeVar("_T")


class Place(Protocol):
    name: str

    async def ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the shard answer that request; 503 with its name if no replica that hosts it answers."""
        ...


@dataclass(slots=True)
class WholeAnswer:
    """An answer kept whole, to be read, merged or sent on."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    async def take(self, message: Message) -> None:
        """Keep a message of the answer; a `Send`."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        else:
            self.pieces.append(message.get("body", b""))

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


async def ask_all(asked: Iterable[Coroutine[Any, Any, _T]]) -> Sequence[_T]:
    """Return the answers in this order; if one raises, the others are cancelled first."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(each) for each in asked]
    return [each.result() for each in running]


log = structlog.get_logger(__name__)

_ASKED_MAX = 3
_CONNECT_S = 2.0
_IDLE_CONNECTIONS_MAX = 16
_LARGE_BODIES = "/v1/jobs:batch"
_ENCODINGS = b"accept-encoding"
PASSED_ON = frozenset(
    {
        b"accept", b"authorization", b"content-type", b"cookie", b"host", b"idempotency-key", b"if-match",
        b"if-none-match", b"last-event-id", b"origin", b"referer", b"sec-fetch-dest", b"sec-fetch-mode",
        b"sec-fetch-site", b"traceparent", b"tracestate", b"user-agent",
    }
)  # fmt: skip
_NOT_PASSED_BACK = frozenset(
    {b"connection", b"content-length", b"date", b"keep-alive", b"server", b"transfer-encoding", b"x-request-id"}
)


@dataclass
class Hosted:
    """The `Place` of a shard that may be hosted here; ``services`` returns its services while it is hosted and ready.

    ``routes`` is the one application of all shards, which answers for the services in a scope.
    """

    name: str
    services: Callable[[], ApiServices | None]
    routes: ASGIApp
    others: "Peers"

    async def ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        services = self.services()
        if services is not None:
            await self.routes({**scope, "state": {**scope["state"], "services": services}}, receive, send)
        elif any(name == ONE_SHARD for name, _ in scope["headers"]):
            not_hosted = unanswered(self.name, "this replica does not host it, or is not ready to")
            not_hosted.headers[NOT_HOSTED.decode()] = self.name
            await not_hosted(scope, receive, send)
        else:
            await self.others.ask(self.name, scope, receive, send)


class Peers:
    """Owner of the connections to other replicas.

    ``addresses`` returns the replicas that host a shard, as ``host:port``, the best first. Without ``tls`` they use
    plain HTTP; with it, the certificate of each is for ``tls_name``, or for its own address if that is empty.
    ``headers_of`` returns the extra headers for another replica, such as the client's address, with the proof that a
    replica sends them.
    """

    def __init__(
        self,
        addresses: Callable[[str], Awaitable[Sequence[str]]],
        *,
        tls: ssl.SSLContext | None,
        tls_name: str,
        headers_of: Callable[[Scope], Iterable[tuple[bytes, bytes]]],
    ) -> None:
        self._addresses = addresses
        self._scheme = "http" if tls is None else "https"
        self._tls_name = tls_name
        self._headers_of = headers_of
        self._client = httpx2.AsyncClient(
            verify=tls if tls is not None else False,
            trust_env=False,
            limits=httpx2.Limits(max_connections=FORWARDED_MAX, max_keepalive_connections=_IDLE_CONNECTIONS_MAX),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, shard: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on the answer of a replica that hosts the shard; 503 if none answers, 429 above the caller's limit.

        Raise `ConnectionAbortedError` if the answer breaks off.
        """
        services: ApiServices = scope["state"]["services"]
        # A request held open ends as it would here: when this replica is about to stop.
        is_over = None if long_request_s_max(scope) is None else lambda: bool(services.view.stopping)
        async with AsyncExitStack() as held:
            try:
                held.enter_context(holding_of(scope).hold_open("forwarded"))
                body = await _body_of(scope, receive)
            except ProblemError as refused:  # not raised: several shards may be asked at once
                await refused.response()(scope, receive, send)
                return
            found = await until_left(self._first_answer(shard, scope, body), receive, is_over)
            if isinstance(found, httpx2.Response):
                held.push_async_callback(found.aclose)
                note_of(scope).unaudited = True  # the other replica audits it
                await until_left(_send_on(found, send), receive, is_over)
            else:  # None if its client has left, or this replica stops
                await (found or in_doubt(shard, scope))(scope, receive, send)

    async def _first_answer(self, shard: str, scope: Scope, body: bytes) -> httpx2.Response | Response:
        for address in (await self._addresses(shard))[:_ASKED_MAX]:
            try:
                answer = await self._client.send(self._request(address, shard, scope, body), stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
                log.debug("forward_failed", address=address, error=str(error) or type(error).__name__)
            except httpx2.HTTPError as error:
                log.warning("forward_interrupted", address=address, error=str(error) or type(error).__name__)
                if scope["method"] != "GET":
                    return in_doubt(shard, scope)
            else:
                if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE or NOT_HOSTED.decode() not in answer.headers:
                    return answer
                await answer.aclose()
        return unanswered(shard)

    def _request(self, address: str, shard: str, scope: Scope, body: bytes) -> httpx2.Request:
        query: bytes = scope.get("query_string", b"")
        target = scope["raw_path"].partition(b"?")[0] + (b"?" + query if query else b"")
        # The answer is passed back as it comes, so ask for the client's own encodings only.
        encodings = [each for each in scope["headers"] if each[0] == _ENCODINGS] or [(_ENCODINGS, b"identity")]
        return self._client.build_request(
            scope["method"],
            httpx2.URL(f"{self._scheme}://{address}").copy_with(raw_path=target),
            headers=[
                *((name, value) for name, value in scope["headers"] if name in PASSED_ON),
                *encodings,
                *self._headers_of(scope),
                (ONE_SHARD, shard.encode()),
                (b"x-request-id", known_request_id(scope).encode()),
            ],
            content=body or None,
            timeout=httpx2.Timeout(time_limit_s(scope), connect=_CONNECT_S, pool=_CONNECT_S),
            extensions={"sni_hostname": self._tls_name} if self._tls_name else {},
        )


def in_doubt(shard: str, scope: Scope) -> Response:
    """Return 503 for a request that may have been carried out."""
    because = f"the connection to a replica of shard {shard} was lost"
    return outcome_unknown(scope, because) or unanswered(shard, "the connection to a replica that hosts it was lost")


def unanswered(shard: str, why: str = "no replica that hosts it answers") -> Response:
    """Return 503 with the name of the shard, and why it does not answer."""
    detail, headers = f"shard {shard}: {why}", {"Retry-After": "2"}
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "shard-unanswered", detail, headers=headers)


async def _body_of(scope: Scope, receive: Receive) -> bytes:
    headers = dict(scope["headers"])
    if b"transfer-encoding" not in headers and headers.get(b"content-length", b"0") == b"0":
        return b""
    return await receive_bounded(receive, LARGE_BODY_BYTES_MAX if scope["path"] == _LARGE_BODIES else BODY_BYTES_MAX)


async def _send_on(answer: httpx2.Response, send: Send) -> None:
    headers = [(name.lower(), value) for name, value in answer.headers.raw]
    passed_back = [each for each in headers if each[0] not in _NOT_PASSED_BACK]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": passed_back})
    try:
        async for piece in answer.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except httpx2.HTTPError as error:
        raise ConnectionAbortedError("the connection to another replica was lost") from error
    await send({"type": "http.response.body", "body": b"", "more_body": False})


_KEPT_S = 1.0
_LIMIT_S = 2.0
_SILENT_AFTER = timedelta(seconds=5)
_LONG_AGO = datetime(1970, 1, 1)  # noqa: DTZ001  # without a zone, as the driver reads dates


class HostAddresses:
    """Owner of the replicas that host one shard, as last read."""

    def __init__(self, database: Database, shard: str) -> None:
        self._leases = database[Collection.LEASES.value]
        self._replicas = database[Collection.REPLICAS.value]
        self._shard = shard
        self._known: Sequence[str] = ()
        self._good_until_s = 0.0
        self._reading = asyncio.Lock()

    async def read(self) -> Sequence[str]:
        """Return addresses as ``host:port``: replicas with a recent heartbeat before silent ones, the leader first.

        They are at most a second old; older while the database does not answer.
        """
        loop = asyncio.get_running_loop()
        async with self._reading:
            if loop.time() >= self._good_until_s:
                try:
                    with faults("read which replicas host a shard", _LIMIT_S):
                        lease = await self._leases.find_one({"_id": self._shard}, {"holder": True})
                        fields = {"http_endpoint": True, "ready": True, "expire_at": True}
                        replicas = await self._replicas.find({}, fields).to_list(None)
                    self._known = _best_first(replicas, None if lease is None else lease.get("holder"))
                except StoreUnavailable as error:
                    log.warning("hosts_read_failed", shard=self._shard, error=str(error))
                self._good_until_s = loop.time() + _KEPT_S
            return self._known


def _best_first(replicas: Sequence[Mapping[str, Any]], leader: object) -> Sequence[str]:
    """Return the addresses in that order.

    Each heartbeat extends its record by the server's clock: a replica is silent if its end is long before the latest
    one.
    """
    found = []
    for each in replicas:
        address, end = each.get("http_endpoint"), each.get("expire_at")
        if address and isinstance(address, str):
            end = end if isinstance(end, datetime) and end.tzinfo is None else _LONG_AGO
            found.append((end, each["_id"] != leader, not each.get("ready"), address))
    latest = max((end for end, *_ in found), default=_LONG_AGO)
    found.sort(key=lambda each: (latest - each[0] > _SILENT_AFTER, *each[1:3]))
    return [address for *_, address in found]
