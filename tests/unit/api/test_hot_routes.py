"""Whichever route a request reaches, it is answered, recorded, counted and stored alike.

Each case is asked of two applications that differ only in whether there are hot routes, each in a world of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import orjson
import pytest
from prometheus_client import generate_latest
from starlette.types import Message, Scope

from hascheduler.api.app import create_app
from hascheduler.api.edge import Edge
from hascheduler.api.hot_routes import HotRoute
from hascheduler.model.collection import Collection
from hascheduler.model.token import Role, digest_of
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.tenant import Tenant
from tests.factories import make_processor, make_token
from tests.tiers import spread
from tests.unit.api.doubles import NOW, World, the_app
from tests.unit.api.requests import scope_of

JOB = {"definition": "log", "payload": {"text": "é\n", "n": [1, 2.5, 1e300, None, True]}, "labels": {"team": "a"}}
PROCESSOR = "http:far.00000001"
NAMED = {"processor": PROCESSOR, "job": "job:0001", "attempt": 1}
SECRETS = {role: f"hsk_{number:043d}" for number, role in enumerate(Role)}
SESSION = f"hsk_{'s' * 43}"
COOKIE = (("Cookie", f"a=b; hascheduler_session={SESSION}"),)
ORIGIN = (("Origin", "http://api"),)
Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: Any = None
    """Bytes as they are, other values as JSON."""
    headers: Headers = ()
    role: Role | None = Role.ADMIN
    length: str | None = "as it is"
    kind: str | None = "application/json"
    pieces: int = 1

    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else b"" if self.body is None else orjson.dumps(self.body)

    def scope(self, app: Edge) -> Scope:
        headers = [(b"host", b"api"), *((name.lower().encode(), value.encode()) for name, value in self.headers)]
        if self.role is not None:
            headers.append((b"authorization", f"Bearer {SECRETS[self.role]}".encode()))
        if self.body is not None:
            if self.length is not None:
                headers.append((b"content-length", self.length.replace("as it is", str(len(self.raw()))).encode()))
            if self.kind is not None:
                headers.append((b"content-type", self.kind.encode()))
        return scope_of(self.method, self.path, headers, app=app)


def submit(body: Any = JOB, **how: Any) -> Asked:
    return Asked("POST", "/v1/jobs", body, **how)


def keyed(key: str) -> Headers:
    return (("Idempotency-Key", key),)


ALONE = [
    submit({"definition": "log"}),
    submit({**JOB, "target": "t", "lane": "misspelt", "not_before": "2030-01-02T00:00:00Z", "mode": "on_demand"}),
    submit({**JOB, "resources": {"cpu": 2}, "fairness_key": "", "tenant": "acme"}, pieces=3),
    submit({**JOB, "definition": "unique"}),
    submit(headers=(*keyed("k"), ("X-Request-Id", "mine"), ("User-Agent", "é"))),
    submit(headers=(("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),)),
    submit({**JOB, "tenant": "other"}, role=Role.SUBMITTER),
    submit({**JOB, "lane": "misspelt"}, role=Role.SUBMITTER),
    submit({**JOB, "tenant": "full"}),
    submit(headers=(*keyed("a"), *keyed("b"))),
    # Before the route's function
    submit(role=None),
    submit(role=Role.VIEWER),
    submit(b"{"),
    submit(b'{"definition": "log", "definition": "log"}'),
    submit({"definition": 1}, headers=keyed("a b")),
    submit(b"x" * (512 * 1024 + 1)),
    submit(length=None, headers=(("Transfer-Encoding", "chunked"),)),
    submit(kind=None),
    submit(headers=(("Content-Type", "application/json"),)),
    Asked("POST", "/v1/jobs?dry_run=true", JOB),
    Asked("POST", "/v1/jobs?wait=0s", JOB),
    # Reading
    Asked("GET", "/v1/jobs/job:0002", role=Role.VIEWER),
    Asked("GET", "/v1/jobs/job:0003"),
    Asked("HEAD", "/v1/jobs/job:0001"),
    Asked("GET", "/v1/jobs/job:0001?wait=1s"),
    Asked("GET", "/v1/jobs/job:0001", JOB),
    Asked("GET", "/v1/jobs/job:0001", role=Role.WORKER),
    # In a session of the dashboard
    submit(role=None, headers=(*COOKIE, *ORIGIN)),
    submit(role=None, headers=(*COOKIE, ("Origin", "http://evil"))),
    submit(headers=COOKIE),
    Asked("GET", "/v1/jobs/job:0001", role=None, headers=(*COOKIE, ("Sec-Fetch-Site", "same-site"))),
    Asked("POST", "/v1/work/heartbeat", {"processor": PROCESSOR}, role=None, headers=(*COOKIE, *ORIGIN)),
    # Work
    Asked("POST", "/v1/work/start", {**NAMED, "processor": "http:nobody.0"}, role=Role.WORKER),
    Asked("POST", "/v1/work/start", NAMED, role=Role.SUBMITTER),
    Asked("POST", "/v1/work/finish", {**NAMED, "outcome": "succeeded", "result": 1}, role=Role.WORKER),
    Asked("POST", "/v1/work/heartbeat", {"processor": PROCESSOR}, role=Role.WORKER, headers=keyed("k")),
]
TOGETHER = [
    [submit(headers=keyed("k")), submit(headers=keyed("k")), submit({"definition": "log"}, headers=keyed("k"))],
    [submit({**JOB, "definition": "unique"}), submit({**JOB, "definition": "unique"})],
    [submit(), submit({**JOB, "depends_on": ["job:0001"]}), Asked("GET", "/v1/jobs/job:0001")],
    [
        Asked("POST", "/v1/work/start", NAMED, role=Role.WORKER),
        Asked(
            "POST",
            "/v1/work/heartbeat",
            {"processor": PROCESSOR, "running": [{"job": "job:0001", "attempt": 1, "percent": 50}]},
            role=Role.WORKER,
        ),
        Asked("POST", "/v1/work/finish", {**NAMED, "outcome": "failed", "error": "é"}, role=Role.WORKER),
        Asked("GET", "/v1/jobs/job:0001"),
    ],
]


@cache
def without_hot_routes() -> Edge:
    return create_app(World().services(), hot=False)


async def told(app: Edge, asked: Asked) -> tuple[Scope, list[Message]]:
    """The scope as it was when the request was answered, and what was sent."""
    scope, raw, sent = asked.scope(app), asked.raw(), list[Message]()
    size = -(-len(raw) // asked.pieces) or 1
    pieces = [raw[begin : begin + size] for begin in range(0, len(raw), size)] or [b""]

    async def receive() -> Message:
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return scope, sent


class BrokenJobs:
    """Where the stores of jobs should be: every use of it is a defect."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


async def prepared(app: Edge) -> World:
    """A world that requires tokens, where job:0001 is dispatched, job:0002 is acme's, and job:0003 can't be read."""
    world = World()
    app.services = replace(world.services(), auth=replace(world.auth, required=True))
    for role, secret in SECRETS.items():
        tenant = "acme" if role in (Role.SUBMITTER, Role.VIEWER) else "*"
        made = make_token(role.value, digest=digest_of(secret), name=role.value, role=role, tenant=tenant)
        await world.tokens.create(made)
    parent = digest_of(SECRETS[Role.ADMIN])
    of_admin = {"name": "admin", "role": Role.ADMIN, "tenant": "*", "expires_at_ms": WallMs(NOW + 1)}
    await world.tokens.create(make_token("session-1", digest=digest_of(SESSION), session_of=parent, **of_admin))
    await world.tenants.create(Tenant.model_construct(name="full", max_pending=0))
    await world.work.register(make_processor(id=PROCESSOR, slots=2))
    for asked in (
        Asked("PUT", "/v1/definitions/unique", {"unique": {"by": ["target"]}}),
        submit(),
        submit({**JOB, "tenant": "acme"}),
        submit(),
    ):
        _, [start, *_] = await told(app, asked)
        assert start["status"] == 201, asked
    await world.dispatch("job:0001", PROCESSOR)
    world.rewrite_job("job:0003", priority="high")
    return world


async def outcome(app: Edge, all_asked: Sequence[Asked], *, world: World, reads: bool = True) -> list[Any]:
    """All that can be seen of the requests, but for random ids."""
    found: list[Any] = []
    for asked in all_asked:
        _, [start, *rest] = await told(app, asked)
        headers = [
            (name, value if name != b"x-request-id" or value == b"mine" else b"") for name, value in start["headers"]
        ]
        found.append((start["status"], headers, b"".join(each.get("body", b"") for each in rest)))
    counts = generate_latest(world.metrics.registry).decode().splitlines()
    found.append([line for line in counts if "_sum" not in line and "_bucket" not in line and "hascheduler" in line])
    if reads:
        await world.audit_writer.flush()
        stored = world.everything()
        for record in stored[Collection.AUDIT]:
            record |= {"_id": None, "request_id": record["request_id"] == "mine"}
        found.append(stored)
    return found


async def same_outcome(all_asked: Sequence[Asked]) -> None:
    short, plain = the_app(), without_hot_routes()
    expected = await outcome(plain, all_asked, world=await prepared(plain))
    assert await outcome(short, all_asked, world=await prepared(short)) == expected


@pytest.mark.parametrize("asked", spread(ALONE, check=16), ids=str)
async def test_both_routes_answer_record_count_and_store_alike(asked: Asked) -> None:
    await same_outcome([asked])


@pytest.mark.parametrize("all_asked", TOGETHER)
async def test_both_routes_answer_what_comes_later_alike(all_asked: Sequence[Asked]) -> None:
    await same_outcome(all_asked)


@pytest.mark.parametrize("status", [503, 500])
async def test_both_routes_fail_alike_without_the_database_and_with_a_defect(status: int) -> None:
    found = []
    for app in (the_app(), without_hot_routes()):
        world = await prepared(app)
        if status == 503:
            world.go_away()
        else:
            app.services = replace(app.services, jobs=BrokenJobs())
        found.append(await outcome(app, [submit()], world=world, reads=status == 500))
    assert found[0][0][0] == status
    assert found[0] == found[1]


@pytest.mark.parametrize("asked", [submit(), Asked("GET", "/v1/jobs/job:0001"), *TOGETHER[-1][:3]], ids=str)
async def test_what_is_asked_for_each_job_is_answered_by_a_hot_route(asked: Asked) -> None:
    for app, is_hot in ((the_app(), True), (without_hot_routes(), False)):
        await prepared(app)
        scope, _ = await told(app, asked)
        assert isinstance(scope["route"], HotRoute) is is_hot
