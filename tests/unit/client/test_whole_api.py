"""The SDK reaches all of the HTTP API: every route, with answers of the types that it promises."""

import re
from collections.abc import AsyncIterator
from typing import Any, get_type_hints

import httpx2
import pytest

from hascheduler.client import (
    Answer,
    AsyncScheduler,
    Conflict,
    Definition,
    Job,
    Lane,
    NotFound,
    Refused,
    Tenant,
    Unavailable,
)  # fmt: skip
from hascheduler.model.collection import Collection
from tests.unit.api.doubles import World, app_of, the_routes
from tests.unit.client.faces import scheduler_over

NOT_FOR_PROGRAMS = {"/livez", "/readyz", "/leaderz", "/metrics"}
"""For probes and for Prometheus."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT.*|(\d+(\.\d+)?(ms|s|m|h|d))+")
CRON: Any = {"type": "cron", "expression": "30 2 * * *"}
TEMPLATE: Any = {"definition": "log", "payload": 1}


class Recorder(httpx2.AsyncBaseTransport):
    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        return await self._transport.handle_async_request(request)


@pytest.fixture
def recorder(world: World) -> Recorder:
    return Recorder(httpx2.ASGITransport(app_of(world)))


@pytest.fixture
def scheduler(recorder: Recorder) -> AsyncScheduler:
    return scheduler_over(recorder, "http://api", patience=0)


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


async def test_every_route_of_the_api_is_reached_and_every_answer_is_typed(
    scheduler: AsyncScheduler, recorder: Recorder, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field is an attribute; none is a text that is an instant or a span."""
    met: list[Answer] = []

    def made(answer: Answer, *fields: Any) -> None:
        dict.__init__(answer, *fields)
        met.append(answer)

    with monkeypatch.context() as over:
        over.setattr(Answer, "__init__", made)
        await go_through(scheduler, world)
        assert wrong_in(met) == set()
    assert len({type(answer) for answer in met}) > 40
    # These are answered without an end, which `httpx2.ASGITransport` can't carry.
    assert missing_in(recorder.requests) == {("GET", "/v1/events"), ("GET", "/v1/cluster/live")}


def wrong_in(met: list[Answer]) -> set[tuple[str, str]]:
    wrong: set[tuple[str, str]] = set()
    for answer in met:  # it grows by the answers inside of each
        kind = type(answer)
        attributes = {name for name in get_type_hints(kind) if name not in ("replayed", "is_duplicate")}
        wrong |= {(kind.__name__, name) for name in {*answer} - {name.removesuffix("_") for name in attributes}}
        for name in attributes:
            value = getattr(answer, name)
            texts = value if isinstance(value, tuple) else (value,)
            if any(isinstance(text, str) and TIME.fullmatch(text) for text in texts):
                wrong.add((kind.__name__, name))
    return wrong


def missing_in(requests: list[httpx2.Request]) -> set[tuple[str, str]]:
    sent = {f"{request.method} {request.url.path}" for request in requests}
    routes = [(method.upper(), path) for path, operations in the_routes().openapi()["paths"].items()
              for method in operations if path not in NOT_FOR_PROGRAMS]  # fmt: skip
    return {
        (method, path)
        for method, path in routes
        if not any(re.fullmatch(f"{method} {re.sub(r'{[a-z_]+}', '[^/]+', path)}", one) for one in sent)
    }


async def go_through(scheduler: AsyncScheduler, world: World) -> None:
    await go_through_resources(scheduler)
    schedule = await scheduler.schedules.create("nightly", CRON, TEMPLATE, labels={"team": "a"})
    assert schedule["rev"] == (await scheduler.schedules.get("nightly"))["rev"]
    assert [one["name"] for one in await listed(scheduler.schedules.list({"team": "a"}))] == ["nightly"]
    assert len(await listed(scheduler.schedules.list(text="NIGHT", state=["active"]))) == 1
    assert (await scheduler.schedules.page(verdict="missed", tenant="default")).items == ()
    assert (await scheduler.schedules.count({"team": "a"}))["matched"] == 1
    replaced = await scheduler.schedules.put("nightly", CRON, TEMPLATE, overlap="skip", if_match=schedule["rev"])
    assert replaced["overlap"] == "skip"
    with pytest.raises(Conflict):
        await scheduler.schedules.put("nightly", CRON, TEMPLATE, if_none_match="*")
    assert (await scheduler.schedules.put("made", CRON, TEMPLATE, if_none_match="*"))["name"] == "made"
    assert await scheduler.schedules.delete("made")
    patched = await scheduler.schedules.patch("nightly", {"labels": {"team": "b"}})
    assert patched["labels"] == {"team": "b"}
    assert (await scheduler.schedules.pause("nightly", "a holiday"))["paused_because"] == "a holiday"
    assert not (await scheduler.schedules.resume("nightly"))["paused"]
    assert (await scheduler.schedules.reset("nightly"))["ahead_until"] is None
    assert len((await scheduler.schedules.preview("nightly", count=3))["fires"]) == 3
    assert len((await scheduler.schedules.preview_trigger(CRON, count=2))["fires"]) == 2
    assert (await scheduler.schedules.preview_patch("nightly", {"trigger": {"expression": "0 3 * * *"}}))["added"]
    with pytest.raises(Refused, match="412"):
        await scheduler.schedules.pause("nightly", if_match=schedule["rev"])
    job = await scheduler.schedules.trigger("nightly", {"payload": 2})
    assert (isinstance(job, Job), job.payload, job.schedule) == (True, 2, "nightly")
    filled = await scheduler.schedules.backfill("nightly", "2029-12-01T00:00:00Z", "2029-12-03T00:00:00Z", dry_run=True)
    assert (filled["count"], filled["created"]) == (2, 2)
    assert await listed(scheduler.schedules.verdicts("nightly", ["missed"])) == []
    recent = await scheduler.schedules.recent(["nightly", "other"])
    assert [row["name"] for row in recent["items"]] == ["nightly"]
    timeline = await scheduler.schedules.timeline(behind="1h", ahead="1h", text="night", labels={"team": "b"}, limit=1)
    assert [row["name"] for row in timeline["items"]] == ["nightly"]
    assert await listed(scheduler.verdicts(["missed"], since="2030-01-01T00:00:00Z", labels={"team": "a"})) == []
    assert (await scheduler.schedules.counts("nightly"))["counts"]["fired"] == 0
    await go_through_jobs(scheduler)
    assert (await scheduler.cluster.status())["leading"]
    assert isinstance(await scheduler.cluster.processors(), tuple)
    paused = (await scheduler.cluster.pause("it burns", schedules_only=True))["paused"]
    assert paused is not None
    assert (paused["because"], paused["schedules_only"]) == ("it burns", True)
    assert (await scheduler.cluster.resume())["paused"] is None
    drained = (await scheduler.cluster.drain("p-1", "its node is replaced"))["drained"]
    assert drained is not None
    assert (await scheduler.cluster.processor_list())["items"][0]["drained"] == drained
    assert (await scheduler.cluster.undrain("p-1"))["drained"] is None
    assert await scheduler.cluster.failovers(limit=1) == ()
    assert (await scheduler.cluster.whoami())["role"] == "admin"
    assert isinstance(await listed(scheduler.cluster.audit(path="/v1/schedules")), list)
    with pytest.raises(Refused, match="lead"):
        await listed(scheduler.cluster.record("1s"))
    await go_through_work(scheduler, world)
    assert await scheduler.schedules.delete("nightly", if_match=(await scheduler.schedules.get("nightly"))["rev"])
    assert not await scheduler.schedules.delete("nightly")


async def go_through_resources(scheduler: AsyncScheduler) -> None:
    definition = await scheduler.definitions.put(Definition(name="log", max_concurrency=3, timeout_ms=5_000))
    lane = await scheduler.lanes.put(Lane(name="slow", weight=2))
    tenant = await scheduler.tenants.put(Tenant(name="acme", max_running=4))
    days = await scheduler.calendars.put_document("business-days", {"weekdays": ["mon-fri"]})
    assert days.weekdays == (0, 1, 2, 3, 4)
    days = await scheduler.calendars.patch("business-days", {"exclude": ["--12-25"]}, if_match=days.rev)
    assert [each.exclude.texts() for each in await listed(scheduler.calendars.list())] == [["--12-25"]]
    assert await scheduler.calendars.get("business-days") == days
    assert await scheduler.calendars.delete("business-days", if_match=days.rev)
    for part, noun, field in (
        (scheduler.definitions, definition, "max_concurrency"),
        (scheduler.lanes, lane, "weight"),
        (scheduler.tenants, tenant, "max_running"),
    ):
        some: Any = part
        changed = await some.patch(noun.name, {field: 7}, if_match=(await some.get(noun.name)).rev)
        assert getattr(changed, field) == 7
        for condition in ({"if_match": 1}, {"if_none_match": "*"}):
            with pytest.raises(Conflict) as refused:
                await some.put(noun, **condition)
            assert refused.value.status == 412
        edited = await some.put(changed.model_copy(update={field: 8}), if_match=changed.rev)
        assert getattr(edited, field) == 8
        with pytest.raises(Refused, match="if_match"):
            await some.put_document(noun.name, {"if_match": 9})
        assert (await some.find(noun.name)).name == noun.name
        assert [one.name for one in await listed(some.list())] == [noun.name]
        assert ([one.name for one in (await some.page(limit=1)).items], (await some.page(after="z")).items) == (
            [noun.name],
            (),
        )
        assert await some.delete(noun.name)
        assert not await some.delete(noun.name)
        assert await some.find(noun.name) is None
        with pytest.raises(NotFound):
            await some.get(noun.name)
    await scheduler.definitions.put(Definition(name="log"))
    assert (await scheduler.documents("definitions").get("log"))["retry"]["backoff"] == "2s"
    token = await scheduler.tokens.create("ci", "viewer", expires_in="1h")
    assert [one["id"] for one in await listed(scheduler.tokens.list())] == [token["id"]]
    assert await scheduler.tokens.revoke(token["id"])


async def go_through_jobs(scheduler: AsyncScheduler) -> None:
    job = await scheduler.submit("log")
    assert (await scheduler.why(job.id))["state"] == "pending"
    await scheduler.submit_many([{"definition": "log"}])
    assert not (await scheduler.submit_many([{"definition": "log"}], atomic=True)).refused
    with pytest.raises(Refused, match=r"422: jobs\.1\.priority"):
        await scheduler.submit_many([{"definition": "log"}, {"definition": "log", "priority": 11}], atomic=True)
    assert await listed(scheduler.list(definition="log"))
    first = await scheduler.page(limit=1, definition="log")
    assert first.items[0].id not in [one.id for one in (await scheduler.page(after=first.next)).items]
    assert [one.id for one in await listed(scheduler.list(id=job.id))] == [job.id]
    assert (await scheduler.count(state="succeeded", id="job:"))["exact"]
    assert (await scheduler.errors(definition="log", since="2030-01-01T00:00:00Z"))["groups"] == []
    await scheduler.get(job.id)
    await scheduler.reprioritize(job.id, 7)
    await scheduler.cancel(job.id)
    await scheduler.retry(job.id)
    assert (await scheduler.retry_with_dependents(job.id)).answer == "not_ended"
    await scheduler.cancel_where(definition="log", dry_run=True)
    await scheduler.reprioritize_where(3, definition="log", dry_run=True)
    await scheduler.retry_where(definition="log", dry_run=True)
    await scheduler.delete_where(definition="log", error="<n>", dry_run=True)
    for change in ("pause", "resume", "reset", "trigger"):
        counted = await getattr(scheduler.schedules, f"{change}_where")(text="no-such", dry_run=True)
        assert (counted.matched, counted.complete) == (0, True)


async def go_through_work(scheduler: AsyncScheduler, world: World) -> None:
    registered = await scheduler.work.register(name="shell", definitions=["log"], slots=2)
    processor = registered["processor"]
    job = await scheduler.submit("log", {"n": 1})
    await world.dispatch(job.id, processor)
    [attempt] = (await scheduler.work.fetch(processor, wait=0))["attempts"]
    await scheduler.work.start(attempt["job"], attempt["attempt"], processor)
    report: Any = {**attempt, "percent": 50.0}
    assert (await scheduler.work.heartbeat(processor, running=[report]))["revoked"] == []
    done = await scheduler.work.finish(attempt["job"], attempt["attempt"], processor, "succeeded", result=[1])
    assert done["answer"] == "done"
    assert world.stored(Collection.JOBS, job.id)["result"] == [1]
    assert await scheduler.work.deregister(processor)


@pytest.mark.parametrize("answer", [{}, {"items": 5, "next": None}, {"items": []}, {"items": [], "nexT": None}])
@pytest.mark.parametrize("part", ["lanes", "tokens", "schedules"])
async def test_a_list_that_is_none_comes_from_no_replica(answer: dict[str, Any], part: str) -> None:
    scheduler = scheduler_over(lambda request: httpx2.Response(200, json=answer), patience=0)
    with pytest.raises(Unavailable, match="sent an invalid answer"):
        await listed(getattr(scheduler, part).list())


async def test_a_name_stays_one_part_of_the_path(scheduler: AsyncScheduler, recorder: Recorder) -> None:
    with pytest.raises(Refused):
        await scheduler.schedules.get("a/../../b?c=d#e")
    [request] = recorder.requests
    assert request.url.raw_path == b"/v1/schedules/a%2F..%2F..%2Fb%3Fc%3Dd%23e"
