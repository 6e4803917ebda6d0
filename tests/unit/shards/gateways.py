"""A gateway before three shards that write down what they are asked, and what tests ask of it."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from hascheduler.api.http.limits import HOLDING, Holding, limits
from hascheduler.api.middleware.audit import begin_notes
from hascheduler.api.middleware.auth import ANONYMOUS, Caller
from hascheduler.model.partition import partition_of
from hascheduler.model.token import Role
from hascheduler.shards.answers import Exchange
from hascheduler.shards.gateway import Gateway
from hascheduler.shards.layout import Layout
from hascheduler.shards.peers import WholeAnswer
from hascheduler.shards.registrations import Registrations
from hascheduler.shards.routes import ROUTES, Rule
from hascheduler.telemetry.metrics_http import HttpMetrics
from tests.unit.shards.worlds import LAYOUT, TENANTS
from tests.unit.shards.worlds import NAMES as SHARDS

HOME, ONE, TWO = TENANTS
PARTITION = partition_of(ONE)


def only(tenant: str, role: Role = Role.ADMIN) -> Caller:
    return Caller(role, tenant, "someone", "id")


@dataclass(frozen=True)
class Sent:
    shard: str
    method: str
    path: str
    body: bytes
    scope: Scope

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class FakePlace:
    """Answers as ``answers`` says by path, else 200 with its own name."""

    name: str
    log: list[Sent]
    answers: dict[str, Any] = field(default_factory=dict)

    async def ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        if scope["method"] in ("POST", "PUT", "PATCH"):
            body = await Request(scope, receive).body()
        sent = Sent(self.name, scope["method"], scope["path"], body, scope)
        self.log.append(sent)
        answer = self.answers.get(scope["path"], (200, {"shard": self.name}))
        if callable(answer):
            answer = answer(sent)
        status, told = await answer if isinstance(answer, Awaitable) else answer
        content = told if isinstance(told, bytes) else orjson.dumps(told)
        await WholeAnswer(status, [(b"content-type", b"application/json")], [content]).send(send)


@dataclass
class FakeWatch:
    """A `LayoutWatch`: ``newer`` is what the home has and nobody has read."""

    now: Layout = LAYOUT
    newer: Layout | None = None
    reads: int = 0

    async def read_again(self) -> Layout:
        self.reads += 1
        self.now, self.newer = self.newer or self.now, None
        return self.now


@dataclass
class FakeNames:
    bound: dict[str, int] = field(default_factory=dict)
    reserved: list[str] = field(default_factory=list)
    fails: Exception | None = None

    async def partition_of(self, name: str) -> int | None:
        if self.fails is not None:
            raise self.fails
        return self.bound.get(name)

    async def reserve(self, name: str, partition: int) -> bool:
        if self.fails is not None:
            raise self.fails
        self.reserved.append(name)
        return self.bound.setdefault(name, partition) == partition


@dataclass
class FakeCopies:
    copied: list[tuple[str, str]] = field(default_factory=list)

    async def written(self, collection: str, name: str) -> None:
        self.copied.append((str(collection), name))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


class Ring:
    """The gateway and all that is beside it."""

    def __init__(self) -> None:
        self.log: list[Sent] = []
        self.places = [FakePlace(name, self.log) for name in SHARDS]
        self.limits = limits()
        self.watch = FakeWatch()
        self.names = FakeNames()
        self.copies = FakeCopies()
        self.merged: list[tuple[str, Any]] = []
        self.streamed: list[str] = []
        routes = [each.partition(" ")[::2] for rule in (Rule.LIST, Rule.CHANGE, Rule.WHOLE) for each in ROUTES[rule]]
        self.gateway = Gateway(
            cast("Any", self.watch),
            self.places,
            cast("Any", self.names),
            cast("Any", self.copies),
            Registrations(self.places),
            dict.fromkeys(routes, self._merge),
            dict.fromkeys(("/v1/events", "/v1/cluster/live"), self._stream),
        )

    @property
    def asked(self) -> list[str]:
        """The shards that were asked, in their order."""
        return [sent.shard for sent in self.log]

    async def _merge(self, layout: Layout, places: Sequence[Any], body: Any, exchange: Exchange) -> None:
        scope, _, send = exchange
        self.merged.append((scope["path"], body))
        await WholeAnswer(200, [], [b"{}"]).send(send)

    async def _stream(self, places: Sequence[Any], scope: Scope, receive: Receive, send: Send) -> None:
        self.streamed.append(scope["path"])
        await WholeAnswer(200, [], [b""]).send(send)

    async def ask(
        self,
        request: str,
        body: Any = None,
        *,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        caller: Caller | None = ANONYMOUS,
        state: dict[str, Any] | None = None,
        receive: Receive | None = None,
    ) -> Answer:
        method, _, path = request.partition(" ")
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        scope: Scope = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(content)).encode()),
                *((name.encode(), value.encode()) for name, value in (headers or {}).items()),
            ],
            "client": ("127.0.0.1", 1),
            "state": {} if state is None else state,
        }
        begin_notes(scope, "")
        holding = Holding(self.limits, (), HttpMetrics(), privileged=True)
        scope["state"].setdefault(HOLDING, holding)
        if caller is not None:
            scope["state"]["caller"] = caller
        self.scope = scope
        messages: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

        async def given() -> Message:
            return messages.pop() if messages else {"type": "http.disconnect"}

        kept: list[Message] = []

        async def send(message: Message) -> None:
            kept.append(message)

        try:
            await self.gateway(scope, receive or given, send)
        finally:
            holding.release()
        starts = [each for each in kept if each["type"] == "http.response.start"]
        assert len(starts) == 1, kept
        told = {name.decode().lower(): value.decode() for name, value in starts[0]["headers"]}
        return Answer(starts[0]["status"], told, b"".join(each.get("body", b"") for each in kept))
