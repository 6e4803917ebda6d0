"""A processor: one worker process, as it registers itself."""

from collections.abc import Set
from dataclasses import dataclass

from hascheduler.errors import InvalidInput
from hascheduler.model.resources import NO_RESOURCES, Resources
from hascheduler.model.values.instants import WallMs

ANY_DEFINITION = "*"
POLLING_PREFIX = "http:"
"""The id prefix of processors that poll for their jobs over HTTP: they get no messages."""

NAME_BYTES_MAX = 200
"""A broker allows 255 bytes for the name of a queue; ours adds its prefix, a token and the number of a shard."""
NOT_CONSUMING = "it does not consume its queue"


def require_name(name: str) -> None:
    """Raise `InvalidInput` if a processor of that name could not get work, because its queue is named after it."""
    if not name or not name.isprintable():
        raise InvalidInput(("name",), f"{ascii(name)[:80]} is empty or contains unprintable characters", _A_NAME)
    if is_polling(name):
        raise InvalidInput(("name",), f"{name[:80]!r} begins with the prefix of HTTP workers", _A_NAME)
    if len(name.encode()) > NAME_BYTES_MAX:
        raise InvalidInput(("name",), f"{len(name.encode())} bytes long", _A_NAME)


_A_NAME = f"printable characters, at most {NAME_BYTES_MAX} bytes in UTF-8, that do not begin with {POLLING_PREFIX!r}"


def is_polling(processor_id: str) -> bool:
    return processor_id.startswith(POLLING_PREFIX)


def with_shard(processor_id: str, shard: str) -> str:
    """Return the id of a polling processor in a deployment of several shards: its requests find that shard by it."""
    return f"{processor_id}@{shard}"


def shard_in(processor_id: str) -> str | None:
    """Return the shard in the id of a processor; None if there is none."""
    return processor_id.rpartition("@")[2] if is_polling(processor_id) and "@" in processor_id else None


def id_in_shard(process: str, shard: int) -> str:
    """Return the id under which a process of several shards registers: in the home its own, then ``…-2`` and so on."""
    return process if shard == 0 else f"{process}-{shard + 1}"


def process_of(processor_id: str) -> str:
    """Return the id of the process that registered under that id."""
    name, dot, token = processor_id.rpartition(".")
    return f"{name}{dot}{token.partition('-')[0]}" if dot else processor_id


def supports(definitions: Set[str], definition: str) -> bool:
    """Return True if a processor with ``definitions`` runs jobs of ``definition``."""
    return ANY_DEFINITION in definitions or definition in definitions


def overlap(mine: Set[str], others: Set[str]) -> bool:
    """Return True if some job could run on a processor with either set of definitions. Each may have a thousand."""
    if not mine or not others:
        return False
    return ANY_DEFINITION in mine or ANY_DEFINITION in others or not mine.isdisjoint(others)


@dataclass(frozen=True, slots=True)
class ProcessorRef:
    """A registered processor.

    ``id`` is unique per process start. ``beat`` grows with every heartbeat: only its *change* means alive.
    ``definitions`` may hold ``"*"``: it takes jobs of every definition. A draining one gets no new jobs. ``resources``
    are those that its jobs share besides the slots. ``name`` and ``parked`` (messages it could not read) are for
    people. ``registered_by`` is the name of the token with which it registered over HTTP; no other token may act for
    it. None: it registered another way, or without a token. ``liveness_endpoint`` is the ``host:port`` at which
    replicas watch its process; empty: nowhere. A processor that is not ``consuming`` gets no messages now, so it is
    ``draining`` too, which is all that 0.2.0 knows of it.
    """

    id: str
    name: str
    shard: str
    definitions: frozenset[str]
    slots: int
    beat: int
    draining: bool
    parked: int
    resources: Resources = NO_RESOURCES
    registered_by: str | None = None
    liveness_endpoint: str = ""
    consuming: bool = True

    @property
    def takes_any(self) -> bool:
        return ANY_DEFINITION in self.definitions

    def supports(self, definition: str) -> bool:
        return supports(self.definitions, definition)


@dataclass(frozen=True, slots=True)
class Rest:
    """The rest of a processor that did not start its last ``missed`` jobs, its ``count``-th in a row.

    It gets no job until ``until_ms``, and then one job at a time, now the ``trial``, until it starts one.
    """

    missed: int
    count: int
    until_ms: WallMs
    trial: str | None = None
