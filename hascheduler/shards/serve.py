"""Puts one process of a deployment together: the shards it hosts, the application that answers, and background tasks.

::

    Ring ─┬─ Hosting ─► HostedShard ─► a replica and the services of one shard, made by the parts of a single shard
          ├─ application: edge ─► Gateway ─► Hosted ─► the one set of routes, with the services of that shard
          └─ background: LayoutWatch · GatewayBoard · LeaderPlacement · Copier · CapTurns · PartitionMover · Names
"""

import asyncio
import ssl
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.types import ASGIApp

from hascheduler.api.app import create_app, create_routes, with_edge
from hascheduler.api.http.server import peer_headers
from hascheduler.api.services import ApiServices
from hascheduler.assembly_api import ProcessServices, services_of
from hascheduler.assembly_replica import ReplicaParts
from hascheduler.clock import SystemClock
from hascheduler.daemon.leadership.liveness import Silencing
from hascheduler.daemon.replica import Replica
from hascheduler.errors import Overloaded, WorldError
from hascheduler.model.collection import Collection as Stored
from hascheduler.mongo.connection import Database
from hascheduler.mongo.holds import MongoHoldStore, OrphanedTransactions
from hascheduler.mongo.replicas import ready_replicas
from hascheduler.mongo.resources import MongoResourceStore
from hascheduler.mongo.tenants import MongoTenantStore
from hascheduler.shards.answers import naming_refusals
from hascheduler.shards.check import PlacedScan
from hascheduler.shards.copies import Copier, Copies, encode_keepable
from hascheduler.shards.databases import ShardDatabases
from hascheduler.shards.events import follow_events, follow_pictures
from hascheduler.shards.gateway import Gateway
from hascheduler.shards.gateways import GatewayBoard
from hascheduler.shards.home import LayoutStore, LayoutWatch
from hascheduler.shards.hosting import HostedShard, Hosting
from hascheduler.shards.layout import Layout
from hascheduler.shards.merging import MERGED
from hascheduler.shards.moves import PartitionMover, ShardDocuments
from hascheduler.shards.names import Names
from hascheduler.shards.peers import HostAddresses, Hosted, Peers
from hascheduler.shards.placement import LeaderPlacement
from hascheduler.shards.registrations import Registrations
from hascheduler.shards.turns import CapTurns, MongoTurnStore, keeps_to_parts
from hascheduler.telemetry.health import ReplicaHealth
from hascheduler.telemetry.metrics_replica import ReplicaGauges

_LATE_MS = 60_000
"""The longest time after its instant of submission at which a document may be stored."""


class OneShard:
    """One process of a deployment of one shard, which needs no ring. ``application`` answers its requests."""

    def __init__(self, database: Database, parts: ReplicaParts, process: ProcessServices) -> None:
        self._replica = parts.replica_of(parts.settings.shard, database, process.clock)
        services = services_of(parts.settings, process, parts.settings.shard, database, self._replica)
        self.application: ASGIApp = create_app(services)
        self.health = ReplicaHealth(services.view)
        self.gauges = ReplicaGauges(lambda: {"": services.view.gauges()})

    def answer_at(self, http_endpoint: str) -> None:
        """Publish the address of the API in the heartbeats."""
        self._replica.http_endpoint = http_endpoint

    async def run(self, answering: asyncio.Task[None]) -> None:
        """Run until `stop`; then end ``answering``, the server of the application."""
        await self._replica.run()
        answering.cancel()
        await asyncio.wait([answering])

    def stop(self) -> None:
        self._replica.stop()

    async def close(self) -> None:
        """Do nothing: nothing is left open."""


class Ring:
    """One process of several shards. ``application`` answers for all of them.

    ``layout`` was agreed on at the start, and ``databases`` are prepared. Replicas know each other by ``peer_key``, and
    connect with ``tls``; over plain HTTP if None.
    """

    def __init__(
        self,
        databases: ShardDatabases,
        layout: Layout,
        parts: ReplicaParts,
        process: ProcessServices,
        *,
        peer_key: bytes,
        tls: ssl.SSLContext | None,
    ) -> None:
        settings = self._settings = parts.settings
        home, all = databases.home, databases.all
        self._databases = databases
        self._parts = parts
        self._process = process
        self._key = peer_key
        self._layouts = LayoutStore(home)
        self._watch = LayoutWatch(self._layouts, layout)
        self._names = Names(home, process.clock.wall_ms)
        shards = [
            HostedShard(index, name, partial(self._made, index), parts.liveness)
            for index, name in enumerate(settings.shard_names)
        ]
        self.health = self._hosting = Hosting(
            shards,
            lambda index: ready_replicas(all[index]),
            name=settings.replica_id,
            most=settings.shard_candidates,
            clock=process.clock,
            after_ms=settings.rebalance_after_ms,
        )
        addresses = {shard.name: HostAddresses(all[shard.index], shard.name) for shard in shards}
        self._peers = Peers(
            lambda shard: addresses[shard].read(),
            tls=tls,
            tls_name=settings.peer_tls_name,
            headers_of=partial(peer_headers, peer_key),
        )
        routes = create_routes()
        places = [
            Hosted(shard.name, partial(getattr, shard, "services"), naming_refusals(shard.name, routes), self._peers)
            for shard in shards
        ]
        gateway = Gateway(
            self._watch,
            places,
            self._names,
            Copies(home, all[1:]),
            Registrations(places),
            MERGED,
            {"/v1/events": follow_events, "/v1/cluster/live": follow_pictures},
        )
        self._board = GatewayBoard(
            home,
            parts.replica_id,
            self._watch,
            shards=settings.shards,
            acknowledged=gateway.acknowledged_epoch,
            is_leading=lambda: self._hosting.home.view.leading,
        )
        services = shards[0].services
        assert services is not None, "the home is hosted from the start"
        self.application: ASGIApp = with_edge(gateway, services, self._turned_away)
        self.gauges = ReplicaGauges(
            lambda: {replica.scheduler: replica.view.gauges() for replica in self._hosting.replicas}, settings.shards
        )

    def answer_at(self, http_endpoint: str) -> None:
        """Publish the address of the API in the heartbeats of all hosted shards."""
        self._hosting.http_endpoint = http_endpoint

    async def run(self, answering: asyncio.Task[None]) -> None:
        """Host until `stop`, and end in good order.

        Once the hosted replicas have ended, end ``answering``, the server of the application, and only then the
        background tasks: a mover counts on this gateway for as long as it answers.
        """
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(each, name=name) for name, each in self._background()]
            await self._hosting.run()
            answering.cancel()
            await asyncio.wait([answering])
            for task in background:
                task.cancel()
        with suppress(WorldError):
            await self._board.leave()

    def stop(self) -> None:
        self._hosting.stop()

    async def close(self) -> None:
        await self._peers.close()

    def _turned_away(self, tenant: str | None, length: int) -> Overloaded | None:
        """Refuse a submit unread if the shard of its tenant would, provided that the shard is hosted here."""
        shard = None if tenant is None else self._hosting.shards[self._watch.now.index_of(tenant)]
        services = None if shard is None else shard.services
        return None if services is None else services.admission.turned_away(tenant, length)

    def _made(self, index: int, silencing: Silencing) -> tuple[Replica, ApiServices]:
        settings, database, count = self._settings, self._databases.all[index], self._settings.shards
        name = settings.shard_names[index]
        replica = self._parts.replica_of(
            name,
            database,
            # A shard elsewhere has a clock of its own, compared with its own MongoDB's.
            self._process.clock if self._databases.is_at_home(index) else SystemClock(),
            part=(index, count),
            silencing=silencing,
            prepare=partial(self._databases.catch_up, index),
            scan=lambda own: PlacedScan(own, self._databases.all, settings.shard_names, index),
        )
        services = services_of(settings, self._process, name, database, replica, count=count)
        if index == 0:
            keepable = MongoResourceStore(database, Stored.DEFINITIONS, partial(encode_keepable, count))
            services = replace(services, definitions=keepable)
        return replica, replace(
            services,
            is_one_of_several=True,
            tenants_in=MongoTenantStore(database, settings.job_retention_ms).tenants,
            peer_key=self._key,
        )

    def _background(self) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
        settings, databases, hosting, clock = self._settings, self._databases.all, self._hosting, self._process.clock
        names, holds = settings.shard_names, [MongoHoldStore(database) for database in databases]
        tenants = [MongoTenantStore(database, settings.job_retention_ms) for database in databases]
        placement = LeaderPlacement(
            names,
            lambda: hosting.replicas,
            name=settings.replica_id,
            clock=clock,
            after_ms=settings.rebalance_after_ms,
            candidates=settings.shard_candidates,
        )
        mover = PartitionMover(
            self._board,
            self._layouts,
            [ShardDocuments(*both) for both in zip(tenants, holds, strict=True)],
            keeps_to_parts=lambda: keeps_to_parts(
                databases, hosting.home.nouns(Stored.DEFINITIONS), settings.max_concurrency
            ),
            clock=clock,
            late_ms=_LATE_MS,
        )
        turns = CapTurns(MongoTurnStore(databases[0]), names, holds, lambda: hosting.replicas, clock)
        yield "layout", self._watch.run()
        yield "gateway", self._board.run()
        yield "names", self._names.run(lambda: self._board.leading, self._layouts.get, databases)
        yield "placement", placement.run()
        yield "moves", mover.run()
        yield "left-transactions", OrphanedTransactions(databases, mover.is_moving, clock).run()
        yield "turns", turns.run()
        for shard in hosting.shards[1:]:
            copier = Copier(databases[0], databases[shard.index], hosting, shard)
            yield f"copies {shard.name}", copier.run()
