"""Finds the shard of each request and hands the request to it, whole.

::

    edge (who asks, limits, audit) ─► Gateway ─┬─► one shard ─┬─► hosted here: its application
                                               │              └─► else: a replica that hosts it (`peers`)
                                               └─► all shards: `merging`, `events`, `batches`, and one answer

Everything of one tenant is in one shard. A request names its tenant by its token, else by its body or query, by the
partition in an id, or by the reserved name of a schedule; `routes` defines which of them.

* While a partition is frozen, every request that may write in it is answered 503 with ``Retry-After``; reads go on.
* A write that another replica sends here goes to the shard of its partition, by the layout known here, or nowhere. So
  naming a wrong shard writes nothing into it.
* A 404 counts only if the newest layout does not place the partition elsewhere.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from fastapi import Request
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from hascheduler.api.admission.worker_registrations import not_registered
from hascheduler.api.http.limits import holding_of
from hascheduler.api.http.problems import ProblemError
from hascheduler.api.middleware.audit import PATTERN
from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing.route_rules import BODY_BYTES_MAX, answer_to, receive_bounded
from hascheduler.errors import CallerError, Conflict, InvalidInput, StoreUnavailable, WorldError
from hascheduler.model.collection import Collection as Nouns
from hascheduler.model.job import schedule_of
from hascheduler.model.partition import partition_in, partition_of
from hascheduler.model.processor import shard_in
from hascheduler.model.token import Power
from hascheduler.model.values.error_texts import quoted
from hascheduler.schema.forms import NAME
from hascheduler.schema.pause import EVERYTHING, drain_id
from hascheduler.schema.tenant import DEFAULT_TENANT
from hascheduler.shards.answers import Merge, answer_of, named, own_request, replayed, tenant_named, whole
from hascheduler.shards.batches import read_batch, submit_batch, tenants_of
from hascheduler.shards.copies import Copies
from hascheduler.shards.home import LayoutWatch
from hascheduler.shards.layout import Layout
from hascheduler.shards.names import Names
from hascheduler.shards.peers import ONE_SHARD, Place, WholeAnswer
from hascheduler.shards.registrations import Registrations
from hascheduler.shards.routes import EVENTS, FETCH, HEARTBEAT, NOUNS, REGISTER, Rule, RuledRoute, matched

log = structlog.get_logger(__name__)

Stream = Callable[[Sequence[Place], Scope, Receive, Send], Awaitable[None]]
_TRIES = 3
_LOOK_EVERY_S = 0.25


@dataclass(slots=True, eq=False)
class _Asked:
    """A request; the messages read are kept, as several shards may have to be asked.

    ``parameter`` is the one in its path, ``only`` the index of the shard that its header names, ``body`` what the
    gateway has read.
    """

    scope: Scope
    receive: Receive
    send: Send
    route: RuledRoute
    parameter: str
    caller: Caller
    only: int | None = None
    body: Any = None
    kept: list[Message] = field(default_factory=list)

    def from_its_beginning(self) -> Receive:
        messages = iter(list(self.kept))

        async def receive() -> Message:
            message = next(messages, None)
            if message is None:
                message = await self.receive()
                if message["type"] == "http.request":
                    self.kept.append(message)
            return message

        return receive

    def field_at(self, *path: str) -> Any:
        """Return the value at that path of the body; None if there is none."""
        value = self.body
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


@dataclass(slots=True, eq=False)
class Gateway:
    """The application of a deployment of several shards; owner of the writes under way.

    ``places`` are its shards, the home first. ``merged`` combines the answers of all shards to a route, ``streams``
    their endless answers.
    """

    layout: LayoutWatch
    places: Sequence[Place]
    names: Names
    copies: Copies
    registrations: Registrations
    merged: Mapping[tuple[str, str], Merge]
    streams: Mapping[str, Stream]
    _under_way: dict[_Asked, Collection[int] | None] = field(default_factory=dict, init=False)
    _acknowledged: int = field(default=0, init=False)

    def acknowledged_epoch(self) -> int:
        """Return the newest seen epoch without a write under way here in a partition that it freezes.

        A request that is held open has already written.
        """
        if not any(
            self._is_frozen(partitions) and not holding_of(asked.scope).is_held_open
            for asked, partitions in self._under_way.items()
        ):
            self._acknowledged = self.layout.now.epoch
        return self._acknowledged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = matched(scope) if scope["type"] == "http" else None
        caller = scope.get("state", {}).get("caller")
        if found is None or caller is None:
            await self.places[0].ask(scope, receive, send)
            return
        route, parameters = found
        # For the edge, which records them: a shard hosted here gets only a copy of the scope.
        scope[PATTERN], scope["path_params"] = route.pattern, dict(parameters)
        try:
            await self._answer(_Asked(scope, receive, send, route, next(iter(parameters.values()), ""), caller))
        except (ProblemError, CallerError, WorldError) as error:
            refused = await answer_to(Request(scope), error)
            answer = whole(refused)
            await (named(answer, self.places[0].name) if isinstance(error, WorldError) else answer).send(send)
        except ClientDisconnect:
            log.debug("client_disconnected", method=route.method, path=scope["path"])

    async def _answer(self, asked: _Asked) -> None:
        shard = dict(asked.scope["headers"]).get(ONE_SHARD)
        if shard is not None:
            asked.only = self._index_of(shard.decode("latin-1"), ONE_SHARD.decode())
            if not asked.route.writes or asked.route.rule is Rule.WORK:
                await self._ask(asked, asked.only)
                return
        await _BY_RULE[asked.route.rule](self, asked)

    # One shard

    async def _of_tenant(self, asked: _Asked, tenant: str) -> None:
        await self._of_partition(asked, partition_of(tenant))

    async def _of_partition(self, asked: _Asked, partition: int) -> None:
        """Pass the request to the partition's shard; after a 404, to the next one if the partition has moved."""
        await self._require_there(asked, {partition})
        missing = WholeAnswer()

        async def send(message: Message) -> None:
            is_missing = missing.status or message.get("status") == HTTPStatus.NOT_FOUND
            await (missing.take if is_missing else asked.send)(message)

        for _ in range(_TRIES):
            index, missing = self.layout.now.shard_of[partition], WholeAnswer()
            with self._writing(asked, {partition}):
                await self.places[index].ask(asked.scope, asked.from_its_beginning(), send)
            if not missing.status:
                return
            if (await self._newest()).shard_of[partition] == index:
                break
        await missing.send(asked.send)

    async def _located(self, asked: _Asked) -> int | None:
        """Search the shards for an id without a partition; return its partition, or None if the request is answered.

        Such ids are from a deployment that had one shard then. A shard may have a worthless copy of what moves, so the
        found document only names its tenant.
        """
        path = "/".join((*asked.route.pattern.split("/")[:3], asked.parameter))
        for index in range(len(self.places)) if asked.only is None else (asked.only,):
            answer = await answer_of(self.places[index], own_request(asked.scope, "GET", path), replayed())
            if answer.status == HTTPStatus.OK:
                found = orjson.loads(answer.body)
                return partition_of(found["tenant"] if "tenant" in found else found["job"]["tenant"])
            if answer.status != HTTPStatus.NOT_FOUND:  # it does not answer, or can't read its document
                with self._writing(asked, None):
                    await self._ask(asked, index)
                return None
        await self._ask(asked, asked.only or 0)
        return None

    async def _ask(self, asked: _Asked, index: int) -> None:
        await self.places[index].ask(asked.scope, asked.from_its_beginning(), asked.send)

    def _is_frozen(self, partitions: Collection[int] | None) -> bool:
        """Return True if one of these partitions is frozen; None stands for all."""
        frozen = self.layout.now.frozen
        return bool(frozen) if partitions is None else not frozen.isdisjoint(partitions)

    @contextmanager
    def _writing(self, asked: _Asked, partitions: Collection[int] | None) -> Iterator[None]:
        """Count a write in these partitions (None: in any) as under way; `ProblemError` while one is frozen."""
        if not asked.route.writes:
            yield
            return
        if self._is_frozen(partitions):
            raise _moving("the tenant is moving to another shard; retry in a second")
        self._under_way[asked] = partitions
        try:
            yield
        finally:
            del self._under_way[asked]

    async def _require_there(self, asked: _Asked, partitions: Collection[int]) -> None:
        """Raise `ProblemError` if the header names another shard than the one of all these partitions."""

        def is_there(layout: Layout) -> bool:
            return {layout.shard_of[partition] for partition in partitions} == {asked.only}

        if asked.only is not None and not is_there(self.layout.now) and not is_there(await self._newest()):
            raise _moving("this is not in the shard that the header names")

    async def _newest(self) -> Layout:
        try:
            return await self.layout.read_again()
        except InvalidInput as error:  # not the caller's mistake
            raise StoreUnavailable(f"the layout can't be read: {error}") from error

    def _index_of(self, shard: str, path: str) -> int:
        names = [place.name for place in self.places]
        if shard not in names:
            raise InvalidInput((path,), f"there is no shard {quoted(shard)}", f"one of {', '.join(names)}")
        return names.index(shard)

    # Shared by all shards

    async def _at_home(self, asked: _Asked) -> None:
        if asked.only not in (None, 0):
            raise InvalidInput((ONE_SHARD.decode(),), "this is shared by all shards", "no such header")
        await self._ask(asked, 0)

    async def _noun(self, asked: _Asked) -> None:
        noun = asked.route.pattern.split("/")[2]
        collection, name = Nouns.PAUSES, EVERYTHING if noun == "cluster" else drain_id(asked.parameter)
        if noun in NOUNS:
            collection, name = Nouns(noun), asked.parameter
        asks_first = collection is Nouns.CALENDARS and asked.route.method == "DELETE"
        if asked.only not in (None, 0):
            # Another replica asks if the shard can do without the calendar.
            await (self._ask(asked, asked.only) if asks_first and asked.only else self._at_home(asked))
            return
        answer, is_changed = WholeAnswer(), False
        for place in (*(self.places[1:] if asks_first else ()), self.places[0]):
            answer = await answer_of(place, asked.scope, asked.from_its_beginning())
            is_changed = is_changed or answer.status < HTTPStatus.BAD_REQUEST
            if answer.status >= HTTPStatus.BAD_REQUEST and answer.status != HTTPStatus.NOT_FOUND:
                break
        if is_changed:  # also if only a shard's copy of a calendar was deleted: this restores it
            await self.copies.written(collection, name)
        await answer.send(asked.send)

    # Of one tenant

    async def _submit(self, asked: _Asked) -> None:
        await self._of_tenant(asked, await self._tenant(asked, "tenant") or DEFAULT_TENANT)

    async def _tenant(self, asked: _Asked, *path: str) -> str | None:
        """Return the tenant of the caller's token, else the one at that path of the body."""
        if asked.caller.only is None:
            await self._read(asked)
        return asked.caller.only or tenant_named(asked.field_at(*path))

    async def _batch(self, asked: _Asked) -> None:
        receive, body, tenants = asked.receive, None, [asked.caller.only or DEFAULT_TENANT]
        if asked.caller.only is None and asked.caller.role.may(Power.SUBMIT):
            read, body = await read_batch(asked.scope, asked.receive)
            receive, tenants = replayed(read, asked.receive), [*tenants_of(body)] or tenants
        partitions = {*map(partition_of, tenants)}
        await self._require_there(asked, partitions)
        with self._writing(asked, partitions):
            layout = self.layout.now
            index, *others = {layout.shard_of[partition] for partition in partitions}
            if others:
                await submit_batch(layout, self.places, body, (asked.scope, receive, asked.send))
            else:
                await self.places[index].ask(asked.scope, receive, asked.send)

    async def _job(self, asked: _Asked) -> None:
        await self._of_name_or(asked, schedule_of(asked.parameter), partition_in(asked.parameter))

    async def _schedule(self, asked: _Asked) -> None:
        is_put = asked.route.method == "PUT"
        if is_put or (asked.route.method == "PATCH" and asked.caller.only is None):
            await self._read(asked)
        if is_put and isinstance(asked.body, dict):
            await self._put(asked, asked.parameter or "")
        else:
            await self._of_name_or(asked, asked.parameter, None)

    async def _put(self, asked: _Asked, name: str) -> None:
        owner = asked.caller.only or _owner_in(asked) or DEFAULT_TENANT
        bound = None if asked.caller.only is not None else await self.names.partition_of(name)
        if bound is not None:
            _require_partition(owner, bound)
        await self._made(asked, name, partition_of(owner))

    async def _of_name_or(self, asked: _Asked, name: str | None, partition: int | None) -> None:
        if asked.caller.only is not None:  # a tenant's token sees 404 for all else
            partition = partition_of(asked.caller.only)
        elif name is not None:
            partition = await self.names.partition_of(name)
        if partition is None:
            partition = await self._located(asked)
            if partition is None:
                return
        owner = _owner_in(asked) if isinstance(asked.body, dict) else None
        if owner is not None:
            _require_partition(owner, partition)
        await self._of_partition(asked, partition)

    async def _create(self, asked: _Asked) -> None:
        await self._read(asked)
        partition = partition_of(asked.caller.only or _owner_in(asked) or DEFAULT_TENANT)
        await self._made(asked, asked.field_at("name"), partition)

    async def _made(self, asked: _Asked, name: object, partition: int) -> None:
        """Reserve the name before the schedule is made, and once more after that (`hascheduler.shards.names`)."""
        if not isinstance(name, str) or not NAME.match(name):  # it is refused, with the reason
            await self._of_partition(asked, partition)
            return
        taken = Conflict(f"a schedule {name!r}, or jobs of one, already exist; use another name")
        await self._require_there(asked, {partition})
        with self._writing(asked, {partition}):
            place = self.places[self.layout.now.shard_of[partition]]
            if not await self.names.reserve(name, partition):
                raise taken
            answer = await answer_of(place, asked.scope, asked.from_its_beginning())
            if answer.status == HTTPStatus.CREATED and not await self.names.reserve(name, partition):
                await answer_of(place, own_request(asked.scope, "DELETE", f"/v1/schedules/{name}"), replayed())
                raise taken
        await answer.send(asked.send)

    async def _read(self, asked: _Asked) -> None:
        """Read the body if the caller has the power; otherwise it is refused unread."""
        power = Power.WORK if asked.route.rule is Rule.WORK else Power.SUBMIT
        if not asked.caller.may(power):
            return
        body = await receive_bounded(asked.from_its_beginning(), BODY_BYTES_MAX)
        with suppress(orjson.JSONDecodeError):  # the shard says what is wrong
            asked.body = orjson.loads(body)

    # Of several tenants

    async def _list(self, asked: _Asked) -> None:
        tenant = asked.caller.only or tenant_named(QueryParams(asked.scope["query_string"]).get("tenant"))
        await (self._whole(asked) if tenant is None else self._of_tenant(asked, tenant))

    async def _whole(self, asked: _Asked) -> None:
        exchange = (asked.scope, asked.from_its_beginning(), asked.send)
        await self.merged[asked.route.method, asked.route.pattern](self.layout.now, self.places, asked.body, exchange)

    async def _change(self, asked: _Asked) -> None:
        tenant = await self._tenant(asked, "filter", "tenant")
        if tenant is not None:
            await self._of_tenant(asked, tenant)
        elif not isinstance(asked.body, dict):  # it is refused, with the reason
            await self._ask(asked, asked.only or 0)
        else:
            with self._writing(asked, None):
                await (self._whole(asked) if asked.only is None else self._ask(asked, asked.only))

    async def _stream(self, asked: _Asked) -> None:
        query, is_events = QueryParams(asked.scope["query_string"]), asked.route.pattern == EVENTS
        tenant = asked.caller.only or tenant_named(query.get("tenant"))
        if is_events and "shard" in query:
            await self._ask(asked, self._index_of(query["shard"], "shard"))
        elif is_events and tenant is not None:
            await self._until_moved(asked, partition_of(tenant))
        else:
            await self.streams[asked.route.pattern](self.places, asked.scope, asked.receive, asked.send)

    async def _until_moved(self, asked: _Asked, partition: int) -> None:
        """Let the partition's shard answer until the partition moves; then end the stream, so the client reconnects."""
        index, begun = self.layout.now.shard_of[partition], False

        async def receive() -> Message:
            message = asyncio.ensure_future(asked.receive())
            try:
                while not message.done():
                    if self.layout.now.shard_of[partition] != index:
                        return {"type": "http.disconnect"}
                    await asyncio.wait({message}, timeout=_LOOK_EVERY_S)
                return message.result()
            finally:
                message.cancel()

        async def send(message: Message) -> None:
            nonlocal begun
            begun = message.get("status") == HTTPStatus.OK or message.get("more_body", False)
            await asked.send(message)

        await self.places[index].ask(asked.scope, receive, send)
        if begun:
            await asked.send({"type": "http.response.body", "body": b"", "more_body": False})

    # Workers over HTTP

    async def _work(self, asked: _Asked) -> None:
        if asked.route.method == "POST":
            await self._read(asked)
        if asked.route.pattern == REGISTER:
            await self._ask(asked, await self.registrations.shard_for(asked.body, asked.scope))
            return
        processor = str(asked.parameter or asked.field_at("processor"))
        index = {place.name: index for index, place in enumerate(self.places)}.get(shard_in(processor) or "", 0)
        is_idle = asked.route.pattern == FETCH and not asked.field_at("running")
        is_idle_heartbeat = asked.route.pattern == HEARTBEAT and not asked.field_at("running")
        if not is_idle_heartbeat and await self.registrations.released(processor, index, asked.scope, is_idle=is_idle):
            raise not_registered(processor)
        await self._ask(asked, index)


_BY_RULE: Mapping[Rule, Callable[[Gateway, _Asked], Awaitable[None]]] = {
    Rule.HOME: Gateway._at_home,
    Rule.NOUN: Gateway._noun,
    Rule.SUBMIT: Gateway._submit,
    Rule.BATCH: Gateway._batch,
    Rule.JOB: Gateway._job,
    Rule.CREATE: Gateway._create,
    Rule.SCHEDULE: Gateway._schedule,
    Rule.LIST: Gateway._list,
    Rule.CHANGE: Gateway._change,
    Rule.WHOLE: Gateway._whole,
    Rule.STREAM: Gateway._stream,
    Rule.WORK: Gateway._work,
}


def _moving(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "moving", detail, headers={"Retry-After": "1"})


def _require_partition(owner: str, partition: int) -> None:
    """Raise `InvalidInput` if this tenant may not own a schedule of that partition."""
    if partition_of(owner) != partition:
        reason = f"{quoted(owner)} may be in another shard, and a schedule can't change its shard"
        raise InvalidInput(("job", "tenant"), reason, "the same tenant, or a schedule of another name")


def _owner_in(asked: _Asked) -> str | None:
    """Return the owner of the schedule in the body; None if the stored owner stays."""
    jobs, job = asked.field_at("jobs"), asked.field_at("job")
    made = jobs if isinstance(jobs, list) else [job]
    named = (tenant_named(each.get("tenant")) for each in made if isinstance(each, dict))
    stays = asked.route.method == "PATCH" and made == [job] and not (isinstance(job, dict) and "tenant" in job)
    return None if stays else next(filter(None, named), DEFAULT_TENANT)
