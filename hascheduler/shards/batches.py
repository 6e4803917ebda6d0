"""``POST /v1/jobs:batch`` with jobs of several shards: each shard gets its part, and the answers are sent as one.

::

    first part ─► its shard names the batch ─► all other parts at once ─► results in the order of the request

The first shard names the batch as a single shard does, so that a repeated request gets the same name; the others get
that name. The key of a job is the key in the header with the job's place in the whole batch, as in one shard. If the
first part is refused, so is the request, and nothing was submitted. If another part is refused, so are its jobs.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from starlette.types import Receive, Scope

from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.server import BATCH_ID
from hascheduler.api.http.strict_json import MalformedJson, Oversized, UnstorableJson, read_json
from hascheduler.api.jobs.batch import JOBS_MAX
from hascheduler.api.routing.route_rules import LARGE_BODY_BYTES_MAX, LARGE_VALUES_MAX, receive_bounded
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.schema.tenant import DEFAULT_TENANT
from hascheduler.shards.answers import Body, Exchange, fitted, part_of, tenant_named
from hascheduler.shards.layout import Layout
from hascheduler.shards.peers import Place, WholeAnswer, ask_all


async def read_batch(scope: Scope, receive: Receive) -> tuple[bytes, Any]:
    """Return the body and its value, None if the shard will refuse it; raise `ProblemError` as the route does."""
    declared = dict(scope["headers"]).get(b"content-length", b"")
    is_number = declared.isdigit() and len(declared) <= len(str(LARGE_BODY_BYTES_MAX))
    size = min(int(declared), LARGE_BODY_BYTES_MAX) if is_number else LARGE_BODY_BYTES_MAX
    with holding_of(scope).take("large_bodies", size):
        body = await receive_bounded(receive, LARGE_BODY_BYTES_MAX)
        try:
            return body, read_json(body, LARGE_VALUES_MAX)
        except (MalformedJson, Oversized, UnstorableJson):
            return body, None


def tenants_of(body: Any) -> Sequence[str]:
    """Return the tenant of each job; none if the shard will refuse the whole batch."""
    jobs = body.get("jobs") if isinstance(body, dict) else None
    if not isinstance(jobs, list) or len(jobs) > JOBS_MAX:
        return ()
    named = (tenant_named(job.get("tenant")) if isinstance(job, dict) else None for job in jobs)
    return [tenant or DEFAULT_TENANT for tenant in named]


async def submit_batch(layout: Layout, places: Sequence[Place], body: Any, exchange: Exchange) -> None:
    """Submit the batch to the shards of its jobs; raise `InvalidInput` if it is atomic and needs two of them."""
    scope, receive, send = exchange
    tenants = tenants_of(body)
    by_shard: dict[int, list[int]] = {}
    for number, tenant in enumerate(tenants):
        by_shard.setdefault(layout.index_of(tenant), []).append(number)
    (first, numbers), *others = by_shard.items()
    if others and body.get("atomic") is True:
        two = ((numbers, first), (others[0][1], others[0][0]))
        found = (f"tenant {quoted(tenants[some[0]])} is in shard {places[shard].name}" for some, shard in two)
        raise InvalidInput(("jobs",), ", and ".join(found), "jobs of one shard in an atomic batch")
    key = dict(scope["headers"]).get(b"idempotency-key")

    async def submit(shard: int, some: Sequence[int], state: Mapping[str, str]) -> WholeAnswer:
        part = _encoded(body, some, None if key is None else key.decode("latin-1"))
        asked = {**scope, "state": {**scope["state"], **state}}
        return await part_of(places[shard], asked, receive, part, patience_s=None)

    answer = await submit(first, numbers, {})
    if answer.status == HTTPStatus.OK:
        batch = str(orjson.loads(answer.body)["batch"])
        answers = [answer, *await ask_all(submit(shard, some, {BATCH_ID: batch}) for shard, some in others)]

        def as_one() -> Body:
            results: dict[int, Any] = {}
            for some, each in zip(by_shard.values(), answers, strict=True):
                results.update(zip(some, _results(each, len(some)), strict=True))
            return {"batch": batch, "results": [results[number] for number in range(len(tenants))]}

        answer = fitted(as_one, answers)
    await answer.send(send)


def _encoded(body: Mapping[str, Any], some: Sequence[int], key: str | None) -> bytes:
    """Encode the part with these jobs, each with its own key."""
    jobs = []
    for number in some:
        job = body["jobs"][number]
        if key is not None and isinstance(job, dict) and job.get("idempotency_key") is None:
            job = {**job, "idempotency_key": f"{key}#{number}"}
        jobs.append(job)
    return orjson.dumps({**body, "jobs": jobs})


def _results(answer: WholeAnswer, count: int) -> Sequence[Any]:
    """Return the result of each job of a part; if the part was refused, the refusal for each."""
    found: Any = orjson.loads(answer.body)
    if answer.status == HTTPStatus.OK:
        return list(found["results"])
    return [{"status": answer.status, "job": None, "problem": {"errors": [], **found}}] * count
