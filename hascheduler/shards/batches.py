"""``POST /v1/jobs:batch`` with jobs of several shards: each shard gets its part, and the answers are sent as one.

::

    first part ─► its shard names the batch ─► all other parts at once ─► results in the order of the request

The first shard names the batch as a single shard does, so that a repeated request gets the same name. The others are
told that name. The key of a job is that of the header with the job's place in the whole batch, as in one shard. If the
first part is refused, so is the request, and nothing was submitted. If another part is refused, so are its jobs.
"""

from collections.abc import Generator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from hascheduler.api.http.strict_json import JsonReader, MalformedJson, Oversized, UnstorableJson
from hascheduler.api.jobs.batch_bodies import JOBS_MAX
from hascheduler.api.middleware.pools import Pools, take
from hascheduler.api.routing.body import LARGE_BODY_BYTES_MAX, LARGE_VALUES_MAX, receive_bounded
from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.errors import InvalidInput
from hascheduler.model.tenant import DEFAULT_TENANT
from hascheduler.model.values.error_texts import quoted
from hascheduler.shards.layout import Layout
from hascheduler.shards.place import Place, WholeAnswer, ask_all
from hascheduler.shards.subrequests import NOT_OF_PARTS, kept_answer, replayed, tenant_named

BATCH_ID = "batch_id"
"""The key of a request's state under which a part of a batch is told the name of the whole."""
_STEP = 10
"""Jobs in a slice."""


async def read_batch(scope: Scope, receive: Receive, pools: Pools) -> tuple[bytes, Any]:
    """Return the body and its value; None as the value if whoever gets it refuses it. `ProblemError` as the route's."""
    declared = dict(scope["headers"]).get(b"content-length", b"")
    size = int(declared) if declared.isdigit() and len(declared) <= len(str(LARGE_BODY_BYTES_MAX)) else None
    with take(pools.large_bodies, scope, LARGE_BODY_BYTES_MAX if size is None else min(size, LARGE_BODY_BYTES_MAX)):
        body = await receive_bounded(receive, LARGE_BODY_BYTES_MAX)
        reader = JsonReader(body, LARGE_VALUES_MAX, 2 * LARGE_BODY_BYTES_MAX)
        try:
            await run_in_slices(reader.steps())
        except (MalformedJson, Oversized, UnstorableJson):
            return body, None
        return body, reader.value


def tenants_of(body: Any) -> Sequence[str]:
    """Return the tenant of each job; none if whoever gets the batch refuses it as a whole."""
    jobs = body.get("jobs") if isinstance(body, dict) else None
    if not isinstance(jobs, list) or len(jobs) > JOBS_MAX:
        return ()
    named = (tenant_named(job.get("tenant")) if isinstance(job, dict) else None for job in jobs)
    return [tenant or DEFAULT_TENANT for tenant in named]


async def submit_batch(
    layout: Layout, places: Sequence[Place], body: Any, exchange: tuple[Scope, Receive, Send]
) -> None:
    """Submit the batch to the shards of its jobs; `InvalidInput` if it is atomic and needs two of them."""
    scope, receive, send = exchange
    tenants = tenants_of(body)
    by_shard: dict[int, list[int]] = {}
    for number, tenant in enumerate(tenants):
        by_shard.setdefault(layout.index_of(tenant), []).append(number)
    (first, numbers), *others = by_shard.items()
    if others and body.get("atomic") is True:
        here, there = (f"tenant {quoted(tenants[each[0]])} is in shard {{}}" for each in (numbers, others[0][1]))
        refusal = f"{here.format(places[first].name)}, and {there.format(places[others[0][0]].name)}"
        raise InvalidInput(("jobs",), refusal, "jobs of one shard in an atomic batch")
    key = dict(scope["headers"]).get(b"idempotency-key")

    async def submit(shard: int, some: Sequence[int], told: Mapping[str, str]) -> WholeAnswer:
        part = b"".join(await run_in_slices(_encoded(body, some, None if key is None else key.decode("latin-1"))))
        headers = [each for each in scope["headers"] if each[0] not in NOT_OF_PARTS]
        length = (b"content-length", str(len(part)).encode())
        asked = {**scope, "headers": [*headers, length], "state": {**scope["state"], **told}}
        return await kept_answer(places[shard], asked, replayed(part, receive))

    answer = await submit(first, numbers, {})
    if answer.status != HTTPStatus.OK:
        await answer.send(send)
        return
    told = {BATCH_ID: str(orjson.loads(answer.body)["batch"])}
    answers = [answer, *await ask_all(submit(shard, some, told) for shard, some in others)]
    results: dict[int, Any] = {}
    for some, each in zip(by_shard.values(), answers, strict=True):
        results.update(zip(some, _results(each, len(some)), strict=True))
    whole = orjson.dumps({"batch": told[BATCH_ID], "results": [results[number] for number in range(len(tenants))]})
    warnings = dict.fromkeys(header for each in answers for header in each.headers if header[0] == b"warning")
    kind = (b"content-type", b"application/json")
    await WholeAnswer(HTTPStatus.OK, [kind, (b"content-length", str(len(whole)).encode()), *warnings], [whole]).send(
        send
    )


def _encoded(body: Mapping[str, Any], some: Sequence[int], key: str | None) -> Generator[None, None, list[bytes]]:
    """Encode the part with these jobs, each with its own key."""
    rest = {name: value for name, value in body.items() if name != "jobs"}
    pieces = [orjson.dumps(rest)[:-1] + (b"," if rest else b"") + b'"jobs":[']
    for place, number in enumerate(some):
        job = body["jobs"][number]
        if key is not None and isinstance(job, dict) and job.get("idempotency_key") is None:
            job = {**job, "idempotency_key": f"{key}#{number}"}
        pieces += [b"," if place else b"", orjson.dumps(job)]
        if place % _STEP == _STEP - 1:
            yield
    return [*pieces, b"]}"]


def _results(answer: WholeAnswer, count: int) -> Sequence[Any]:
    """Return what became of each job of a part: if the part was refused, that refusal."""
    told: Any = orjson.loads(answer.body)
    if answer.status == HTTPStatus.OK:
        return list(told["results"])
    return [{"status": answer.status, "job": None, "problem": {"errors": [], **told}}] * count
