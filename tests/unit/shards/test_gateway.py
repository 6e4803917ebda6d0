"""Each request reaches the shard that it is about, and no other; writes stand still while their partition is frozen."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.types import Message

from hascheduler.api.http.limits import HOLDING, Holding
from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import StoreUnavailable
from hascheduler.model.partition import partition_of, with_partition
from hascheduler.model.token import ALL_TENANTS, Role
from hascheduler.shards.merging import MERGED
from hascheduler.shards.peers import ONE_SHARD
from hascheduler.shards.routes import ROUTES, Rule
from hascheduler.telemetry.metrics_http import HttpMetrics
from tests.tiers import spread
from tests.unit.api.doubles import description
from tests.unit.shards.gateways import ONE, PARTITION, TWO, Answer, Ring, Sent, only
from tests.unit.shards.worlds import LAYOUT, shards

HEADER = ONE_SHARD.decode()
TICK = {"name": "tick", "trigger": {"type": "interval", "every": "1s"}, "job": {"definition": "log", "tenant": ONE}}
FROZEN = LAYOUT.beginning({PARTITION: 2}).freezing(PARTITION)
ARRIVED = FROZEN.arrived(PARTITION).thawed(PARTITION)


@pytest.fixture
def ring() -> Ring:
    return Ring()


def check_moving(answer: Answer) -> None:
    assert (answer.status, answer.json["type"]) == (503, "urn:hascheduler:problem:moving"), answer
    assert answer.headers["retry-after"] == "1"


# The table


def test_every_route_of_the_openapi_document_has_one_rule() -> None:
    described = {f"{method.upper()} {path}" for path, methods in description()["paths"].items() for method in methods}
    ruled = [route for routes in ROUTES.values() for route in routes]
    assert len(ruled) == len(set(ruled))
    assert set(ruled) == described
    assert set(ROUTES) == set(Rule)


def test_the_answers_of_all_shards_to_a_route_are_merged_or_nothing_asks_all() -> None:
    merged = {f"{method} {path}" for method, path in MERGED}
    assert merged == {*ROUTES[Rule.LIST], *ROUTES[Rule.CHANGE], *ROUTES[Rule.WHOLE]}


# Whose a request is

JOB_OF_ONE = with_partition("job:0001", ONE)


@pytest.mark.parametrize(
    ("request_", "body", "query", "shard"),
    [
        ("GET /readyz", None, "", "default"),
        ("GET /v1/definitions", None, "", "default"),
        ("POST /v1/tokens", {}, "", "default"),
        ("POST /v1/schedules/preview", {}, "", "default"),
        ("POST /v1/jobs", {"definition": "log", "tenant": ONE}, "", "0001"),
        ("GET /v1/jobs", None, f"limit=3&tenant={TWO}", "0002"),
        ("POST /v1/jobs:delete", {"filter": {"tenant": ONE}}, "", "0001"),
        ("POST /v1/schedules:pause", {"filter": {"tenant": TWO}}, "", "0002"),
        (f"GET /v1/jobs/{JOB_OF_ONE}", None, "", "0001"),
        (f"POST /v1/jobs/{JOB_OF_ONE}/cancel", None, "", "0001"),
        ("GET /v1/jobs/fire:tick:1893456000000", None, "", "0002"),
        ("GET /v1/schedules/tick", None, "", "0002"),
        ("POST /v1/schedules/tick/trigger", {}, "", "0002"),
        ("GET /v1/schedules/tick/preview", None, "", "0002"),
        ("POST /v1/work/fetch", {"processor": "http:a.1@0001"}, "", "0001"),
        ("POST /v1/work/start", {"processor": "http:a.1@0002", "job": "j", "attempt": 1}, "", "0002"),
        ("DELETE /v1/work/processors/http:a.1@0002", None, "", "0002"),
        ("POST /v1/work/heartbeat", {"processor": "http:a.1"}, "", "default"),
        ("POST /v1/work/heartbeat", {"processor": "http:a.1@other"}, "", "default"),
        ("GET /v1/events", None, "shard=0002", "0002"),
    ],
)
async def test_a_request_reaches_its_shard_whole(ring: Ring, request_: str, body: Any, query: str, shard: str) -> None:
    ring.names.bound["tick"] = partition_of(TWO)
    answer = await ring.ask(request_, body, query=query)
    [sent] = ring.log
    assert (sent.shard, answer.status) == (shard, 200)
    assert sent.method + " " + sent.path == request_
    assert sent.scope["query_string"] == query.encode()
    if body is not None:
        assert sent.json == body


@pytest.mark.parametrize("request_", [*ROUTES[Rule.LIST], *ROUTES[Rule.CHANGE], *ROUTES[Rule.WHOLE]])
async def test_what_is_of_all_tenants_is_merged(ring: Ring, request_: str) -> None:
    body = {"filter": {"definition": "log"}} if request_.startswith("POST") else None
    assert (await ring.ask(request_, body)).status == 200
    assert ring.merged == [(request_.split(" ")[1], body)]
    assert not ring.log


@pytest.mark.parametrize(
    "request_",
    ["POST /v1/jobs", "POST /v1/jobs:batch", *ROUTES[Rule.LIST], *ROUTES[Rule.CHANGE], "POST /v1/schedules/x/pause",
     "GET /v1/jobs/job:1~00", "GET /v1/schedules/tick", "GET /v1/events"],
)  # fmt: skip
async def test_a_token_of_one_tenant_has_one_shard(ring: Ring, request_: str) -> None:
    """Whatever it asks for, and its body need not be read for that."""
    ring.names.bound["tick"] = partition_of(TWO)
    await ring.ask(request_, b"not read", query=f"tenant={TWO}" if request_.startswith("GET") else "", caller=only(ONE))
    assert ring.asked == ["0001"]


async def test_the_whole_is_shown_to_a_token_of_one_tenant_too_and_all_events_are_one_stream(ring: Ring) -> None:
    await ring.ask("GET /v1/cluster", caller=only(ONE))
    await ring.ask("GET /v1/cluster/live", caller=only(ONE))
    await ring.ask("GET /v1/events", query="definition=log")
    assert [path for path, _ in ring.merged] == ["/v1/cluster"]
    assert ring.streamed == ["/v1/cluster/live", "/v1/events"]


async def test_the_edge_learns_what_to_record(ring: Ring) -> None:
    ring.names.bound["tick"] = PARTITION
    await ring.ask("POST /v1/schedules/tick/pause")
    assert ring.scope["route_pattern"] == "/v1/schedules/{name}/pause"
    assert ring.scope["path_params"] == {"name": "tick"}
    # A shard adds to the note in its copy of the state.
    assert ring.log[0].scope["state"]["audit_note"] is ring.scope["state"]["audit_note"]


# Bodies that nobody should send

HOSTILE = [
    b"",
    b"{",
    b"[]",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 2_000 + b"1" + b"}" * 2_000,
    b'{"tenant":7,"name":{},"filter":[],"job":3,"jobs":{"a":1},"processor":[],"definitions":{"a":2}}',
    b'{"tenant":null,"name":null,"filter":{"tenant":{}},"job":{"tenant":[]},"jobs":null,"definitions":[1]}',
    b'{"tenant":"\\ud800","name":"\\ud800","jobs":[1,null,{"tenant":{}}],"processor":"\\ud800"}',
    b'{"tenant":"' + b"x" * 9_000 + b'","name":"' + b"x" * 9_000 + b'","jobs":["a"]}',
    b'{"jobs":[' + b",".join([b"{}"] * 1_001) + b"]}",
    b'{"jobs":[1,{"tenant":"t1"},{"tenant":"t2"},{"tenant":"t3"}],"atomic":"yes"}',
]


WITH_BODIES = [each for routes in ROUTES.values() for each in routes if each.startswith("P")]


async def test_a_hostile_body_is_no_defect_of_the_real_routes_either(ring: Ring) -> None:
    ring.gateway.places = shards()
    found = {}
    for request_ in spread(WITH_BODIES, check=8):
        for body in HOSTILE:
            answer = await ring.ask(request_.format(id="job:1", name="tick"), body, headers={"host": "api"})
            found[request_, body[:40]] = answer.status
    assert not {each: status for each, status in found.items() if status >= 500}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.WORKER])
@pytest.mark.parametrize(
    "request_", ["POST /v1/jobs", "POST /v1/jobs:batch", "PUT /v1/schedules/x", "POST /v1/schedules"]
)
async def test_the_body_of_who_has_no_power_is_not_read(ring: Ring, request_: str, role: Role) -> None:
    async def never() -> Message:
        raise AssertionError("read")

    for place in ring.places:
        place.ask = _refuse  # type: ignore[method-assign]
    answer = await ring.ask(request_, caller=Caller(role, ALL_TENANTS, "someone", "id"), receive=never)
    assert answer.status == 403


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 403, "headers": []})
    await send({"type": "http.response.body", "body": b""})


# Ids that say nothing, and answers that count


async def test_an_id_that_says_nothing_is_looked_for_and_goes_to_the_shard_of_its_tenant(ring: Ring) -> None:
    """Not to the one that has it: what moves has a copy in another shard, and a change of that would be lost."""
    ring.places[0].answers["/v1/jobs/job:old"] = (404, {})
    ring.places[1].answers["/v1/jobs/job:old"] = (200, {"tenant": TWO})
    answer = await ring.ask("POST /v1/jobs/job:old/cancel", {"because": "x"}, headers={"idempotency-key": "K"})
    assert answer.json == {"shard": "0002"}
    assert ring.asked == ["default", "0001", "0002"]
    assert [sent.method for sent in ring.log] == ["GET", "GET", "POST"]
    assert ring.log[2].json == {"because": "x"}
    assert b"idempotency-key" not in dict(ring.log[0].scope["headers"])


async def test_a_404_counts_only_by_the_newest_layout(ring: Ring) -> None:
    request_ = f"POST /v1/jobs/{JOB_OF_ONE}/cancel"
    ring.places[1].answers[f"/v1/jobs/{JOB_OF_ONE}/cancel"] = (404, {"of": "0001"})
    answer = await ring.ask(request_)
    assert (answer.status, answer.json, ring.asked, ring.watch.reads) == (404, {"of": "0001"}, ["0001"], 1)
    ring.watch.newer = ARRIVED
    assert (await ring.ask(request_, {"a": 1})).json == {"shard": "0002"}
    assert [sent.json for sent in ring.log[1:]] == [{"a": 1}] * 2


async def test_without_the_home_what_needs_it_is_503_with_its_name(ring: Ring) -> None:
    ring.names.fails = StoreUnavailable("down")
    answer = await ring.ask("GET /v1/schedules/tick")
    assert answer.status == 503
    assert "shard default" in answer.json["detail"]
    assert (await ring.ask("POST /v1/jobs", {"tenant": TWO})).json == {"shard": "0002"}


# Moves


WRITES: list[tuple[str, Any]] = [
    ("POST /v1/jobs", {"tenant": ONE}),
    ("POST /v1/jobs:batch", {"jobs": [{"tenant": ONE}]}),
    ("POST /v1/schedules", TICK),
    (f"POST /v1/jobs/{JOB_OF_ONE}/cancel", None),
    ("POST /v1/jobs:cancel", {"filter": {"tenant": ONE}}),
]
OF_OLD = ("POST /v1/jobs/job:old/cancel", None)


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        *WRITES,
        OF_OLD,
        ("POST /v1/jobs:batch", {"jobs": [{"tenant": TWO}, {"tenant": ONE}]}),
        ("PATCH /v1/schedules/tick", {"labels": {}}),
        ("POST /v1/schedules/old/pause", None),
        ("POST /v1/jobs:cancel", {"filter": {"definition": "log"}}),
    ],
)
async def test_while_a_partition_is_frozen_what_may_write_in_it_is_503(ring: Ring, request_: str, body: Any) -> None:
    ring.watch.now = FROZEN
    ring.names.bound["tick"] = PARTITION
    for place in ring.places:
        place.answers = {
            "/v1/jobs/job:old": (200, {"tenant": ONE}),
            "/v1/schedules/old": (200, {"job": {"tenant": ONE}}),
        }
    check_moving(await ring.ask(request_, body))
    assert all(sent.method == "GET" for sent in ring.log)
    assert not ring.merged


@pytest.mark.parametrize(
    "request_",
    ["GET /v1/schedules/tick", "POST /v1/schedules/tick/preview", f"GET /v1/jobs/{JOB_OF_ONE}", "GET /v1/jobs"],
)
async def test_while_a_partition_is_frozen_it_is_read_where_it_was(ring: Ring, request_: str) -> None:
    ring.watch.now = FROZEN
    ring.names.bound["tick"] = PARTITION
    assert (await ring.ask(request_, query="" if "/" in request_[9:] else f"tenant={ONE}")).json == {"shard": "0001"}
    assert (await ring.ask("POST /v1/jobs", {"tenant": TWO})).status == 200


@asynccontextmanager
async def under_way(ring: Ring, request_: str, body: Any = None, **how: Any) -> AsyncIterator[asyncio.Task[Answer]]:
    """A request that a shard answers only at the end of the block."""
    begun, over = asyncio.Event(), asyncio.Event()

    async def held(_: Sent) -> tuple[int, Any]:
        begun.set()
        await over.wait()
        return 201, {}

    for place in ring.places:
        place.answers[request_.split(" ")[1]] = held
    asking = asyncio.create_task(ring.ask(request_, body, **how))
    await begun.wait()
    yield asking
    over.set()
    await asyncio.wait([asking])


@pytest.mark.parametrize(("request_", "body"), [*WRITES, OF_OLD])
async def test_a_frozen_layout_is_acknowledged_once_no_write_in_it_is_under_way(
    ring: Ring, request_: str, body: Any
) -> None:
    for place in ring.places:
        place.answers["/v1/jobs/job:old"] = (200, {"tenant": ONE})
    async with under_way(ring, request_, body):
        assert ring.gateway.acknowledged_epoch() == LAYOUT.epoch
        ring.watch.now = FROZEN
        assert ring.gateway.acknowledged_epoch() == LAYOUT.epoch
    assert ring.gateway.acknowledged_epoch() == FROZEN.epoch
    ring.watch.now = ARRIVED
    assert ring.gateway.acknowledged_epoch() == ARRIVED.epoch


async def test_writes_in_other_partitions_and_reads_hold_no_move_up(ring: Ring) -> None:
    writing = under_way(ring, "POST /v1/jobs", {"tenant": TWO})
    async with writing, under_way(ring, "GET /v1/jobs", query=f"tenant={ONE}"):
        ring.watch.now = FROZEN
        assert ring.gateway.acknowledged_epoch() == FROZEN.epoch


async def test_a_submit_that_waits_for_its_job_has_been_written(ring: Ring) -> None:
    """Else a wait of five minutes would keep its partition from moving."""
    holding = Holding(ring.limits, (), HttpMetrics(), privileged=False)
    async with under_way(ring, "POST /v1/jobs", {"tenant": ONE}, query="wait=5m", state={HOLDING: holding}):
        ring.watch.now = FROZEN
        assert ring.gateway.acknowledged_epoch() < FROZEN.epoch
        holding.hold_open("waits")
        assert ring.gateway.acknowledged_epoch() == FROZEN.epoch


async def test_a_write_that_is_cut_off_is_not_under_way(ring: Ring) -> None:
    async with under_way(ring, "POST /v1/jobs", {"tenant": ONE}) as writing:
        writing.cancel()
        await asyncio.wait([writing])
        ring.watch.now = FROZEN
        assert ring.gateway.acknowledged_epoch() == FROZEN.epoch


# One shard by name


async def test_a_read_that_names_a_shard_reaches_it(ring: Ring) -> None:
    for request_ in ("GET /v1/jobs", "GET /v1/cluster", f"GET /v1/jobs/{JOB_OF_ONE}", "GET /v1/definitions"):
        await ring.ask(request_, headers={HEADER: "0002"})
    assert ring.asked == ["0002"] * 4
    assert not ring.merged


@pytest.mark.parametrize("request_", ["GET /v1/jobs", "POST /v1/jobs"])
async def test_an_unknown_shard_is_refused_with_the_names(ring: Ring, request_: str) -> None:
    answer = await ring.ask(request_, {"tenant": ONE}, headers={HEADER: "0009"})
    assert answer.status == 422
    assert "default, 0001, 0002" in answer.json["detail"]
    answer = await ring.ask("GET /v1/events", query="shard=nine")
    assert answer.status == 422
    assert "default, 0001, 0002" in answer.json["detail"]


@pytest.mark.parametrize(("request_", "body"), WRITES)
async def test_a_write_reaches_the_shard_it_names_if_that_is_its_own(ring: Ring, request_: str, body: Any) -> None:
    check_moving(await ring.ask(request_, body, headers={HEADER: "0002"}))
    assert not ring.log
    await ring.ask(request_, body, headers={HEADER: "0001"})
    assert ring.asked == ["0001"]
    ring.watch.now, ring.watch.newer = LAYOUT, ARRIVED  # whoever sent it has seen more
    await ring.ask(request_, body, headers={HEADER: "0002"})
    assert ring.asked == ["0001", "0002"]


async def test_what_all_share_is_written_in_no_single_shard(ring: Ring) -> None:
    for request_ in ("PUT /v1/lanes/a", "POST /v1/tokens", "DELETE /v1/definitions/a", "POST /v1/cluster/pause"):
        assert (await ring.ask(request_, {}, headers={HEADER: "0002"})).status == 422
    assert not ring.log
    await ring.ask("PUT /v1/lanes/a", {}, headers={HEADER: "default"})
    assert ring.asked == ["default"]


# What all share


@pytest.mark.parametrize(
    ("request_", "copied"),
    [
        ("PUT /v1/definitions/log", ("definitions", "log")),
        ("DELETE /v1/tenants/a", ("tenants", "a")),
        ("POST /v1/processors/resizer-0/drain", ("pauses", "processor:resizer-0")),
        ("POST /v1/processors/resizer-0/undrain", ("pauses", "processor:resizer-0")),
        ("POST /v1/cluster/pause", ("pauses", "everything")),
    ],
)
async def test_what_all_share_is_written_in_the_home_and_copied(
    ring: Ring, request_: str, copied: tuple[str, str]
) -> None:
    await ring.ask(request_, {"a": 1})
    assert (ring.asked, ring.copies.copied) == (["default"], [copied])
    ring.places[0].answers[request_.split(" ")[1]] = (422, {})
    assert (await ring.ask(request_, {"a": 1})).status == 422
    assert ring.copies.copied == [copied]


async def test_a_calendar_is_deleted_once_no_shard_uses_it(ring: Ring) -> None:
    ring.places[1].answers["/v1/calendars/holidays"] = (404, {})
    assert (await ring.ask("DELETE /v1/calendars/holidays")).json == {"shard": "default"}
    assert ring.asked == ["0001", "0002", "default"]
    assert ring.copies.copied == [("calendars", "holidays")]


@pytest.mark.parametrize("status", [409, 503, 412])
async def test_a_calendar_stays_while_one_shard_uses_it_or_does_not_answer(ring: Ring, status: int) -> None:
    ring.places[2].answers["/v1/calendars/holidays"] = (status, {"of": "0002"})
    answer = await ring.ask("DELETE /v1/calendars/holidays")
    assert (answer.status, answer.json) == (status, {"of": "0002"})
    assert ring.asked == ["0001", "0002"]
    assert ring.copies.copied == [("calendars", "holidays")]  # the copy that 0001 has deleted comes back
    ring.log.clear()
    await ring.ask("DELETE /v1/calendars/holidays", headers={HEADER: "0001"})
    assert ring.asked == ["0001"]


# Schedules


@pytest.mark.parametrize("request_", ["POST /v1/schedules", "PUT /v1/schedules/tick"])
async def test_a_schedules_name_is_reserved_before_and_after_it_is_made(ring: Ring, request_: str) -> None:
    _, _, path = request_.partition(" ")
    ring.places[1].answers[path] = lambda _: (201, {"reserved": list(ring.names.reserved)})
    assert (await ring.ask(request_, TICK)).json == {"reserved": ["tick"]}
    assert ring.names.reserved == ["tick", "tick"]
    assert ring.names.bound == {"tick": PARTITION}
    ring.places[1].answers[path] = (422, {})
    assert (await ring.ask(request_, TICK)).status == 422


async def test_a_name_of_another_partition_is_taken(ring: Ring) -> None:
    ring.names.bound["tick"] = partition_of(TWO)
    answer = await ring.ask("POST /v1/schedules", TICK)
    assert (answer.status, answer.json["type"]) == (409, "urn:hascheduler:problem:conflict")
    assert not ring.log


async def test_a_schedule_that_has_lost_its_name_meanwhile_is_deleted_again(ring: Ring) -> None:
    def lose(_: Sent) -> tuple[int, Any]:
        ring.names.bound["tick"] = partition_of(TWO)
        return 201, {}

    ring.places[1].answers["/v1/schedules"] = lose
    answer = await ring.ask("POST /v1/schedules", TICK, headers={"authorization": "Bearer x"})
    assert answer.status == 409
    _, deleted = ring.log
    assert (deleted.shard, deleted.method, deleted.path) == ("0001", "DELETE", "/v1/schedules/tick")
    assert dict(deleted.scope["headers"]) == {b"authorization": b"Bearer x"}


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 9_000, 7, None])
async def test_what_is_no_name_is_never_reserved(ring: Ring, name: object) -> None:
    await ring.ask("POST /v1/schedules", {**TICK, "name": name})
    assert (ring.asked, ring.names.reserved) == (["0001"], [])


@pytest.mark.parametrize(
    ("method", "body", "is_refused"),
    [
        ("PUT", {"job": {"tenant": ONE}}, False),
        ("PUT", {"job": {"tenant": TWO}}, True),
        ("PUT", {"job": {}}, True),  # the tenant "default" is meant
        ("PUT", {"jobs": [{"ref": "a"}, {"ref": "b", "tenant": ONE}]}, False),
        ("PATCH", {"job": {"tenant": ONE}}, False),
        ("PATCH", {"job": {"tenant": TWO}}, True),
        ("PATCH", {"job": {"tenant": None}}, True),
        ("PATCH", {"jobs": [{"ref": "a", "tenant": TWO}]}, True),
        ("PATCH", {"jobs": None}, False),
    ],
)
async def test_a_schedule_stays_in_its_partition(ring: Ring, method: str, body: Any, *, is_refused: bool) -> None:
    ring.names.bound["tick"] = PARTITION
    answer = await ring.ask(f"{method} /v1/schedules/tick", body)
    assert answer.status == (422 if is_refused else 200)
    assert ring.asked == ([] if is_refused else ["0001"])
    if is_refused:
        assert answer.json["errors"][0]["path"] == "job.tenant"


# Streams


async def test_a_stream_of_one_tenant_ends_when_the_tenant_moves(ring: Ring) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def follow(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"an event", "more_body": True})
        begun.set()
        assert (await receive())["type"] == "http.disconnect"
        ended.set()

    async def stays() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    ring.places[1].ask = follow  # type: ignore[method-assign]
    following = asyncio.create_task(ring.ask("GET /v1/events", query=f"tenant={ONE}", receive=stays))
    await begun.wait()
    ring.watch.now = FROZEN
    assert not ended.is_set()
    ring.watch.now = ARRIVED
    assert (await following).body == b"an event"
    assert ended.is_set()
