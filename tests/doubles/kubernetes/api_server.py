"""An API server's double, on a port of its own: HTTPS, tokens, rights, Leases, and every trouble it may have.

It can be closed and opened again on the same port, fall silent before or after it has carried something out, and answer
whatever it is told to. Rights are rules as a Role has them, judged as the real one judges them.
"""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hascheduler.api.http.server import PromptServer
from hascheduler.tls import PemFile, server_context
from tests.doubles.kubernetes.stored_leases import Refused, StoredLeases
from tests.unit.tls.certificates import Issued

GROUP = "coordination.k8s.io"
ALL_RIGHTS = ({"apiGroups": [GROUP], "resources": ["leases"], "verbs": ["get", "create", "update", "delete"]},)
_LEASES = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/leases"


class ApiServerDouble:
    """Owner of its Leases and troubles. ``asked`` are the requests that came, such as ``PUT hascheduler-default``."""

    def __init__(self, certificate: Issued, token: str) -> None:
        self.leases = StoredLeases()
        self.tokens = {token}
        self.rules: Sequence[Mapping[str, Any]] = ALL_RIGHTS
        self.asked: list[str] = []
        self.port = 0
        self._certificate = certificate
        self._answers: deque[Response] = deque()
        self._silent_before = 0
        self._silent_after = 0
        self._closing = asyncio.Event()
        self._holding = asyncio.Event()
        self._server: _Server | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    # Its troubles

    def next_answer(self, response: Response) -> None:
        """The next request is answered so, and not carried out."""
        self._answers.append(response)

    def silent(self, requests: int = 1, *, carried_out: bool = False) -> None:
        """So many of the next requests get no answer, whether or not they are carried out."""
        if carried_out:
            self._silent_after = requests
        else:
            self._silent_before = requests

    async def holding(self) -> None:
        """Until a request has come that gets no answer."""
        await self._holding.wait()

    def use(self, certificate: Issued) -> None:
        """The certificate from the next `open` on."""
        self._certificate = certificate

    async def open(self) -> None:
        listener = socket.socket(proto=socket.IPPROTO_TCP)  # else answers wait for acknowledgements of their heads
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self._closing.clear()
        cert, key = PemFile("cert", self._certificate.cert), PemFile("key", self._certificate.key)
        config = _Config(_app(self), lifespan="off", log_config=None, access_log=False, ws="none")
        config.tls = server_context(cert, key, PemFile("", ""))
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))

    async def close(self) -> None:
        """Like a machine that goes down: connections end in the middle, and none is taken any more."""
        if self._server is None or self._serving is None:
            return
        self._closing.set()
        # First the door, or who was thrown out comes in again.
        for listener in self._server.servers if self._server.started else ():
            listener.close()
        for connection in list(self._server.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        self._server.end()
        await self._serving
        self._server = self._serving = None

    # Requests

    async def answer(self, request: Request) -> Response:
        if self._closing.is_set():  # on a line that was still being made
            return Response(status_code=503, headers={"Connection": "close"})
        name = request.path_params.get("name")
        self.asked.append(f"{request.method} {name or ''}".rstrip())
        if self._silent_before > 0:
            self._silent_before -= 1
            await self._hold()
        if self._answers:
            return self._answers.popleft()
        body = await request.json() if request.method in ("POST", "PUT") else None
        try:
            response = self._carry_out(request, name, body)
        except Refused as refused:
            response = _status(refused)
        if self._silent_after > 0:
            self._silent_after -= 1
            await self._hold()
        return response

    async def _hold(self) -> None:
        self._holding.set()
        await self._closing.wait()

    def _carry_out(self, request: Request, name: str | None, body: Any) -> Response:
        namespace = request.path_params["namespace"]
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or token not in self.tokens:
            raise Refused(401, "Unauthorized", "Unauthorized")
        match request.method:
            case "GET":
                self._demand("get", name, namespace)
                return JSONResponse(self.leases.get(namespace, name or ""))
            case "POST":
                self._demand("create", None, namespace)
                return JSONResponse(self.leases.create(namespace, body), 201)
            case "PUT":
                self._demand("update", name, namespace)
                lease, made = self.leases.replace(namespace, name or "", body)
                return JSONResponse(lease, 201 if made else 200)
            case _:
                self._demand("delete", name, namespace)
                return JSONResponse(self.leases.delete(namespace, name or ""))

    def _demand(self, verb: str, name: str | None, namespace: str) -> None:
        if not any(_allows(rule, verb, name) for rule in self.rules):
            said = f'"{name}" is' if name else "is"
            raise Refused(
                403, "Forbidden", f'leases.{GROUP} {said} forbidden: User "test" cannot {verb} in "{namespace}"'
            )


@asynccontextmanager
async def serving(certificate: Issued, token: str) -> AsyncIterator[ApiServerDouble]:
    double = ApiServerDouble(certificate, token)
    await double.open()
    try:
        yield double
    finally:
        await double.close()


def _allows(rule: Mapping[str, Any], verb: str, name: str | None) -> bool:
    """A rule for some names says nothing of a request without one, as is every create."""
    names = rule.get("resourceNames") or []
    return (
        GROUP in rule["apiGroups"] and "leases" in rule["resources"] and verb in rule["verbs"]
        and (not names or name in names)
    )  # fmt: skip


def _status(refused: Refused) -> Response:
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(refused),
            "reason": refused.reason, "code": refused.status}  # fmt: skip
    return JSONResponse(body, refused.status)


def _app(double: ApiServerDouble) -> Starlette:
    return Starlette(
        routes=[
            Route(_LEASES, double.answer, methods=["POST"]),
            Route(_LEASES + "/{name}", double.answer, methods=["GET", "PUT", "DELETE"]),
        ]
    )


class _Config(uvicorn.Config):
    tls: Any = None

    def load(self) -> None:
        super().load()
        self.ssl = self.tls


class _Server(PromptServer):
    """Ends at once: it lets nothing finish that is in flight."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        while self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks)
