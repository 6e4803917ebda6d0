"""Which part of the system a stack belongs to: one table, from modules to parts.

A sample belongs to the first frame, from the innermost outwards, whose module has a part. The longest prefix of dotted
names decides; ``module:function`` is longer than its module. Modules without an entry, such as those of the standard
library, are charged to their caller, and so are those that have the part `CALLER`. A stack with no other frame is the
event loop's own: polling, reading and writing sockets, and the switch from task to task.

Some parts work for others: a driver encodes for the journal and for starts alike. `Share.room` says for which part, by
the same rule without those parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

CALLER = ""
EVENT_LOOP = "event loop"

_ADMISSION = "admission"
_AMQP = "AMQP driver"
_APPLY = "apply"
_AUDIT = "audit log"
_BOOKKEEPING = "driver sessions, pools"
_CODING = "driver encode/decode"
_COMMANDS = "commands of people"
_DECIDE = "decide"
_EVENTS = "events of jobs"
_EXCHANGES = "exchange batching"
_FINISH = "finish"
_FOLD = "fold"
_HANDLERS = "HTTP handlers"
_INSERT = "insert"
_JOURNAL = "journal"
_LOG = "log"
_METRICS = "metrics"
_MIDDLEWARES = "middlewares"
_PARSE = "HTTP parse"
_PUBLISH = "publish"
_RECEIVE = "receive"
_ROUTING = "HTTP routing"
_RUN = "run handler"
_SAMPLER = "sampler"
_SOCKETS = "driver sockets"
_START = "start"
_STREAM = "stream decode"
_TRACING = "tracing"
_VALIDATION = "validation"
_WAKE_BEATS = "idle wake-ups: heartbeats"
_WAKE_CHECKS = "idle wake-ups: checks"
_WAKE_HTTP = "idle wake-ups: HTTP server"
_WAKE_LEASE = "idle wake-ups: lease"
_WAKE_MONITORS = "idle wake-ups: driver"

LIBRARIES = frozenset({_AMQP, _BOOKKEEPING, _CODING, _EXCHANGES, _LOG, _METRICS, _SOCKETS, _TRACING})
"""Parts that work for others."""

PARTS = {
    # HTTP, from the socket to the route.
    "uvicorn": _PARSE,
    "uvicorn.server": _WAKE_HTTP,
    "h11": _PARSE,
    "httptools": _PARSE,
    "hascheduler.api.http": _PARSE,
    "hascheduler.api.http.problems": _HANDLERS,
    "hascheduler.api.http.strict_json": _VALIDATION,
    "starlette": _ROUTING,
    "starlette.middleware": _MIDDLEWARES,
    "starlette._exception_handler": _MIDDLEWARES,
    "fastapi": _ROUTING,
    "fastapi._compat": _VALIDATION,
    "fastapi.dependencies": _VALIDATION,
    "pydantic": _VALIDATION,
    "hascheduler.api.admission": _ADMISSION,
    "hascheduler.api.app": _HANDLERS,
    "hascheduler.api.edge": _MIDDLEWARES,
    "hascheduler.api.hot_routes": _ROUTING,
    "hascheduler.api.jobs": _HANDLERS,
    "hascheduler.api.middleware": _MIDDLEWARES,
    "hascheduler.api.middleware.audit_writer": _AUDIT,
    "hascheduler.api.ops": _HANDLERS,
    "hascheduler.api.resources": _HANDLERS,
    "hascheduler.api.ui": _HANDLERS,
    "hascheduler.api.routing": _ROUTING,
    "hascheduler.api.routing.route_rules": _VALIDATION,
    "hascheduler.api.schedules": _HANDLERS,
    "hascheduler.api.services": _HANDLERS,
    "hascheduler.api.swagger_ui": _HANDLERS,
    "hascheduler.api.work": _HANDLERS,
    "hascheduler.schema": _VALIDATION,
    # The driver of MongoDB, and what goes through it.
    "bson": _CODING,
    "pymongo": _BOOKKEEPING,
    "pymongo.message": _CODING,
    "pymongo.network_layer": _SOCKETS,
    "pymongo.network_layer:_poll_cancellation": _WAKE_MONITORS,
    "pymongo.asynchronous.monitor": _WAKE_MONITORS,
    "pymongo.periodic_executor": _WAKE_MONITORS,
    "hascheduler.mongo.accounts": _WAKE_CHECKS,
    "hascheduler.mongo.apply": _APPLY,
    "hascheduler.mongo.audit_log": _AUDIT,
    "hascheduler.mongo.buckets": _ADMISSION,
    "hascheduler.mongo.bulk_changes": CALLER,
    "hascheduler.mongo.check": _WAKE_CHECKS,
    "hascheduler.mongo.connection": CALLER,
    "hascheduler.mongo.holds": _WAKE_CHECKS,
    "hascheduler.mongo.left_transactions": _WAKE_CHECKS,
    "hascheduler.mongo.tenants": _WAKE_CHECKS,
    "hascheduler.mongo.failovers": _WAKE_LEASE,
    "hascheduler.mongo.fallback": _PUBLISH,
    "hascheduler.mongo.identities": _COMMANDS,
    "hascheduler.mongo.faults": CALLER,
    "hascheduler.mongo.jobs.counts": _HANDLERS,
    "hascheduler.mongo.jobs.lists": _HANDLERS,
    "hascheduler.mongo.jobs.store": _INSERT,
    "hascheduler.mongo.jobs.submissions": _INSERT,
    "hascheduler.mongo.journal": _JOURNAL,
    "hascheduler.mongo.leases": _WAKE_LEASE,
    "hascheduler.mongo.newest_first": _HANDLERS,
    "hascheduler.mongo.queries": CALLER,
    "hascheduler.mongo.replicas": _WAKE_BEATS,
    "hascheduler.mongo.request_batcher": _EXCHANGES,
    "hascheduler.mongo.resources": _HANDLERS,
    "hascheduler.mongo.schedules": _HANDLERS,
    "hascheduler.mongo.schema": _COMMANDS,
    "hascheduler.mongo.state_updates": CALLER,
    "hascheduler.mongo.stream": _STREAM,
    "hascheduler.mongo.tokens": _MIDDLEWARES,
    "hascheduler.mongo.traces": _TRACING,
    "hascheduler.mongo.transport": _PUBLISH,
    "hascheduler.mongo.unreachable": CALLER,
    "hascheduler.mongo.verdicts": _HANDLERS,
    "hascheduler.mongo.work.finishes": _FINISH,
    "hascheduler.mongo.work.servers": _WAKE_BEATS,
    "hascheduler.mongo.work.started_attempts": _START,
    "hascheduler.mongo.work.starts": _START,
    "hascheduler.mongo.work.store": _WAKE_BEATS,
    "hascheduler.mongo.work.store:finish": _FINISH,
    "hascheduler.mongo.work.store:give_back": _FINISH,
    "hascheduler.mongo.work.store:start": _START,
    # From the stream to decisions that are carried out.
    "hascheduler.daemon.config": CALLER,
    "hascheduler.daemon.leadership": _WAKE_LEASE,
    "hascheduler.daemon.leadership.trusted_clock": CALLER,
    "hascheduler.daemon.loop.attempt_metrics": _METRICS,
    "hascheduler.daemon.loop.batch_delay": _DECIDE,
    "hascheduler.daemon.loop.committer": _JOURNAL,
    "hascheduler.daemon.loop.committer:_applying": _APPLY,
    "hascheduler.daemon.loop.committer:apply_until_known": _APPLY,
    "hascheduler.daemon.loop.cost_checkpoint": _WAKE_CHECKS,
    "hascheduler.daemon.loop.checks": _WAKE_CHECKS,
    "hascheduler.daemon.loop.feeder": _FOLD,
    "hascheduler.daemon.loop.inbox": _DECIDE,
    "hascheduler.daemon.loop.processor_probe": _WAKE_BEATS,
    "hascheduler.daemon.loop.recorder": _DECIDE,
    "hascheduler.daemon.loop.replica_heartbeat": _WAKE_BEATS,
    "hascheduler.daemon.loop.stepper": _DECIDE,
    "hascheduler.daemon.outbound.event_log": _EVENTS,
    "hascheduler.daemon.outbound.event_tail": _EVENTS,
    "hascheduler.daemon.outbound.publisher:_span": _TRACING,
    "hascheduler.daemon.outbound.publisher": _PUBLISH,
    "hascheduler.daemon.outbound.waiters": _EVENTS,
    "hascheduler.daemon.readiness": CALLER,
    "hascheduler.daemon.replica": CALLER,
    "hascheduler.daemon.router": _FOLD,
    "hascheduler.daemon.view": CALLER,
    "hascheduler.dispatch": _DECIDE,
    "hascheduler.election": _WAKE_LEASE,
    "hascheduler.kubernetes": _WAKE_LEASE,
    "hascheduler.mirror": _FOLD,
    "hascheduler.shards": CALLER,
    "hascheduler.shards.copies": _WAKE_CHECKS,
    "hascheduler.shards.home": _WAKE_CHECKS,
    "hascheduler.shards.hosting": _WAKE_LEASE,
    "hascheduler.shards.moves": _WAKE_CHECKS,
    "hascheduler.shards.placement": _WAKE_LEASE,
    "hascheduler.shards.turns": _WAKE_CHECKS,
    "hascheduler.triggers": _DECIDE,
    # The broker.
    "aio_pika": _AMQP,
    "aiormq": _AMQP,
    "pamqp": _AMQP,
    "hascheduler.rabbitmq.connection": _PUBLISH,
    "hascheduler.rabbitmq.deliveries": _RECEIVE,
    "hascheduler.rabbitmq.events": _EVENTS,
    "hascheduler.rabbitmq.faults": CALLER,
    "hascheduler.rabbitmq.publisher": _PUBLISH,
    "hascheduler.rabbitmq.topology": _PUBLISH,
    # Processors.
    "hascheduler.shards.offers": _WAKE_BEATS,
    "hascheduler.shards.processors": _WAKE_BEATS,
    "hascheduler.processor": _RUN,
    "hascheduler.processor.acknowledgements": _RECEIVE,
    "hascheduler.processor.attempt_loops": _WAKE_BEATS,
    "hascheduler.processor.health": _WAKE_BEATS,
    "hascheduler.processor.heartbeat": _WAKE_BEATS,
    "hascheduler.processor.intake": _RECEIVE,
    "hascheduler.processor.outcomes": _FINISH,
    "hascheduler.processor.processor": CALLER,
    "hascheduler.processor.retrying": CALLER,
    "hascheduler.processor.runner:_finish": _FINISH,
    "hascheduler.processor.runner:_settle": _FINISH,
    "hascheduler.processor.runner:_start": _START,
    "hascheduler.processor.self_fence": _WAKE_BEATS,
    "processors": _RUN,
    "tests.bench.handlers": _RUN,
    "tests.bench.sampled": _SAMPLER,
    # What looks on.
    "hascheduler.telemetry": _METRICS,
    "hascheduler.telemetry.health": _WAKE_CHECKS,
    "hascheduler.api.ops.health_port": _WAKE_CHECKS,
    "hascheduler.telemetry.log_lines": _LOG,
    "hascheduler.telemetry.otlp": _TRACING,
    "hascheduler.telemetry.tracing": _TRACING,
    "logging": _LOG,
    "opentelemetry": _TRACING,
    "prometheus_client": _METRICS,
    "structlog": _LOG,
    # What all use, and what starts a process: beneath each stack, with the loop.
    "hascheduler.clock": CALLER,
    "hascheduler.compiled": CALLER,
    "hascheduler.errors": CALLER,
    "hascheduler.gc_tuning": CALLER,
    "hascheduler.model": CALLER,
    "hascheduler.ports": CALLER,
    "hascheduler.settings": CALLER,
    "hascheduler.tls": CALLER,
    "hascheduler.__main__": CALLER,
    "hascheduler.assembly": CALLER,
    "hascheduler.assembly_processor": CALLER,
    "hascheduler.assembly_api": CALLER,
    "hascheduler.assembly_replica": CALLER,
    "hascheduler.lifecycle": CALLER,
    "hascheduler.cli.run": CALLER,
    "hascheduler.cli.setting_options": CALLER,
    "hascheduler.cli.output.logs": _LOG,
    # What runs in processes of its own, by hand or in a test.
    "hascheduler.bootstrap": _COMMANDS,
    "hascheduler.check": _WAKE_CHECKS,
    "hascheduler.cli": _COMMANDS,
    "hascheduler.client": _COMMANDS,
    "hascheduler.demo": _COMMANDS,
    "hascheduler.embedded": _COMMANDS,
    "hascheduler.pytest_plugin": _COMMANDS,
    "hascheduler.simulate": _COMMANDS,
    "hascheduler.testing": _COMMANDS,
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a stack: its module, as it would be imported, and its function."""

    module: str
    function: str


@dataclass(frozen=True, slots=True)
class Share:
    """Whose a sample is. ``room`` is the part for which a library's part works, where the stack shows one; else the
    part itself."""

    part: str
    room: str


def share_of(stack: Sequence[Frame]) -> Share:
    """``stack`` has the innermost frame first."""
    named = [part for frame in stack if (part := part_of(frame.module, frame.function))]
    part = named[0] if named else EVENT_LOOP
    room = next((name for name in named if name not in LIBRARIES), part)
    return Share(part, room)


@cache
def part_of(module: str, function: str = "") -> str | None:
    """None where the table says nothing of it."""
    prefix = f"{module}:{function}"
    if prefix in PARTS:
        return PARTS[prefix]
    prefix = module
    while prefix not in PARTS:
        prefix, _, last = prefix.rpartition(".")
        if not last or not prefix:
            return None
    return PARTS[prefix]
