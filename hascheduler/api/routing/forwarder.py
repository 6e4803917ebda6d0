"""Has a request answered by a replica that follows the shard that it is about, where this one does not.

::

    request ─► KeptBody ─► route: NotFollowedHere ─► Forwarder ─► another replica: identifies, charges and answers
                                                        │
                                                        └─► none answers: 503 with the name of the shard

The whole request goes, as it came: the caller shows its own token there, and is judged there as here. So a request can
do nothing by it that it could not do there itself. What must hold:

* A request is forwarded once: a header says so (`FORWARDED`), and the other replica answers 503 itself where it does
  not follow the shard either; then the next one is asked. A client that sends that header itself gets the same, and
  nothing else.
* Only addresses that replicas wrote into the home are asked, and only the headers `PASSED_ON` go there.
* What is under way has a bound (the pool ``forwarded``), of which a token has half, as of the requests in flight here
  and there. Answers are passed on piece by piece, the bodies of requests kept up to `KEPT_BYTES_MAX`, and the time
  limit of the request holds for all of it. It ends when its client leaves.
* Whatever may have been carried out is not sent again: another replica is tried where no connection came about, where
  the one that was asked says that it did nothing, or where the request only reads.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus

import httpx
import orjson
import structlog
from fastapi import Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.middleware.audit import AuditNote, known_request_id
from hascheduler.api.middleware.outcomes import outcome_unknown
from hascheduler.api.middleware.pools import FORWARDED_MAX, held_open, take
from hascheduler.api.middleware.timeouts import long_request_s_max, time_limit_s
from hascheduler.api.routing.forwarding import FORWARDED, NONE_ANSWERS, NOT_FOLLOWED, RETRY_LATER, body_of, unanswered
from hascheduler.api.routing.long_poll import until_left
from hascheduler.api.routing.peer_events import SILENT_S_MAX, peer_events
from hascheduler.ports import EventFeed

log = structlog.get_logger(__name__)

_ASKED_MAX = 3
_CONNECT_S = 2.0
_IDLE_CONNECTIONS_MAX = 16
PASSED_ON = frozenset(
    {
        b"accept", b"authorization", b"content-type", b"cookie", b"host", b"idempotency-key", b"if-match",
        b"if-none-match", b"last-event-id", b"origin", b"referer", b"sec-fetch-dest", b"sec-fetch-mode",
        b"sec-fetch-site", b"traceparent", b"tracestate", b"user-agent",
    }
)  # fmt: skip
_NOT_OF_PEER_EVENTS = frozenset({b"accept-encoding", b"last-event-id"})
_NOT_PASSED_BACK = frozenset(
    {"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "x-request-id"}
)


class BrokenOff(Exception):
    """The other replica was asked and gave no answer: whether it was carried out is unknown."""


class _DidNothing:
    """The other replica has done nothing, or only read: another one may be asked."""


class Forwarder:
    """Owner of the connections to other replicas. ``addresses`` gives those that follow a shard, as ``host:port``, the
    best first. Without ``tls`` they speak plain HTTP; with it, the certificate of each is for ``tls_name``, or for
    its own address where that is empty."""

    def __init__(
        self, addresses: Callable[[str], Sequence[str]], *, tls: ssl.SSLContext | None = None, tls_name: str = ""
    ) -> None:
        self._addresses = addresses
        self._scheme = "http" if tls is None else "https"
        self._extensions = {"sni_hostname": tls_name} if tls_name else {}
        self._client = httpx.AsyncClient(
            verify=tls if tls is not None else False,
            trust_env=False,
            limits=httpx.Limits(max_connections=FORWARDED_MAX, max_keepalive_connections=_IDLE_CONNECTIONS_MAX),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def answer(self, request: Request, shard: str) -> Response:
        """The answer of a replica that follows the shard, or 503 where none gives one; 429 or 503 where the caller has
        too many under way."""
        if FORWARDED in request.headers:
            return unanswered(shard, followed_elsewhere=True)
        body = body_of(request.scope)
        if body is None:
            return unanswered(shard)
        view = request.state.services.view
        # One that is held open ends as it would here: when this replica is about to end.
        is_over = None if long_request_s_max(request.scope) is None else lambda: bool(view.stopping)
        async with AsyncExitStack() as held:
            held.enter_context(held_open(take(request.state.services.pools.forwarded, request.scope), request.scope))
            for address in self._addresses(shard)[:_ASKED_MAX]:
                try:
                    found = await until_left(self._asked(address, request, body), request.receive, is_over)
                except BrokenOff:
                    found = None
                if found is None:  # or its client has left, or this replica ends
                    because = f"a replica that follows shard {shard} broke off"
                    return outcome_unknown(request.scope, because) or unanswered(shard, may_be_done=True)
                if not isinstance(found, _DidNothing):
                    request.state.audit_note = AuditNote(unaudited=True)  # that replica records it
                    held.push_async_callback(found.aclose)
                    return _PassedOn(found, held.pop_all())
        return unanswered(shard)

    @asynccontextmanager
    async def events(
        self, request: Request, shards: Sequence[str], after: str | None
    ) -> AsyncIterator[Mapping[str, EventFeed]]:
        """`peer_events`, within the caller's share of what may be under way; 429 or 503 where that is too little."""
        slot = take(request.state.services.pools.forwarded, request.scope, len(shards))
        with held_open(slot, request.scope):
            async with peer_events(partial(self._event_stream, request), request, shards, after) as feeds:
                yield feeds

    async def _event_stream(
        self, request: Request, shard: str, query: Sequence[tuple[str, str]]
    ) -> httpx.Response | ProblemError:
        headers = [(name, value) for name, value in _headers_for(request) if name not in _NOT_OF_PEER_EVENTS]
        headers.append((b"accept-encoding", b"identity"))
        unavailable, detail = HTTPStatus.SERVICE_UNAVAILABLE, NONE_ANSWERS.format(shard)
        refused = ProblemError(unavailable, "shard-unanswered", detail, headers=RETRY_LATER)
        for address in self._addresses(shard)[:_ASKED_MAX]:
            url = httpx.URL(f"{self._scheme}://{address}{request.scope['path']}", params=query)
            found = await self._sent(self._built("GET", url, headers, SILENT_S_MAX), address)
            if not isinstance(found, httpx.Response):
                continue
            if found.status_code == HTTPStatus.OK:
                return found
            refused = await _refusal_in(found)
            if refused.status_code != unavailable:
                break
        return refused

    async def _asked(self, address: str, request: Request, body: bytes) -> "httpx.Response | _DidNothing":
        url = self._url(address, request.scope)
        limit_s = time_limit_s(request.scope)
        return await self._sent(self._built(request.method, url, _headers_for(request), limit_s, body), address)

    def _built(
        self, method: str, url: httpx.URL, headers: Sequence[tuple[bytes, bytes]], limit_s: float, body: bytes = b""
    ) -> httpx.Request:
        return self._client.build_request(
            method,
            url,
            headers=headers,
            content=body or None,
            timeout=httpx.Timeout(limit_s, connect=_CONNECT_S, pool=_CONNECT_S),
            extensions=dict(self._extensions),
        )

    async def _sent(self, asked: httpx.Request, address: str) -> "httpx.Response | _DidNothing":
        try:
            answer = await self._client.send(asked, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            log.debug("forward_unanswered", address=address, error=str(error) or type(error).__name__)
            return _DidNothing()
        except httpx.HTTPError as error:
            log.warning("forward_broken_off", address=address, error=str(error) or type(error).__name__)
            if asked.method == "GET":
                return _DidNothing()
            raise BrokenOff from error
        if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE and NOT_FOLLOWED in answer.headers:
            await answer.aclose()
            return _DidNothing()
        return answer

    def _url(self, address: str, scope: Scope) -> httpx.URL:
        raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope.get("query_string", b"")
        target = raw_path.partition(b"?")[0] + (b"?" + query if query else b"")
        return httpx.URL(f"{self._scheme}://{address}").copy_with(raw_path=target)


def _headers_for(request: Request) -> Sequence[tuple[bytes, bytes]]:
    passed_on = [(name, value) for name, value in request.scope["headers"] if name in PASSED_ON]
    # The answer is passed back as it comes: encoded only as the client itself would have it.
    encoding = request.headers.get("accept-encoding", "identity").encode("latin-1")
    passed_on.append((b"accept-encoding", encoding))
    return [*passed_on, (FORWARDED.encode(), b"1"), (b"x-request-id", known_request_id(request.scope).encode())]


async def _refusal_in(answer: httpx.Response) -> ProblemError:
    """What the other replica says to a request for its events."""
    try:
        told = orjson.loads(await answer.aread())
        kind, detail = str(told["type"]).rpartition(":")[2], str(told["detail"])
    except (httpx.HTTPError, orjson.JSONDecodeError, KeyError, TypeError):
        kind, detail = "shard-unanswered", f"another replica answered {answer.status_code}"
    finally:
        await answer.aclose()
    retry_after = answer.headers.get("retry-after")
    headers = None if retry_after is None else {"Retry-After": retry_after}
    return ProblemError(HTTPStatus(answer.status_code), kind, detail, headers=headers)


class _PassedOn(StreamingResponse):
    def __init__(self, answer: httpx.Response, held: AsyncExitStack) -> None:
        self._held = held
        super().__init__(_pieces(answer), answer.status_code, _headers_of(answer))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)


async def _pieces(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in answer.aiter_raw():
        yield piece


def _headers_of(answer: httpx.Response) -> Mapping[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in _NOT_PASSED_BACK}
