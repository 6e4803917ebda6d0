"""A replica's heartbeat: its state, written once a retry period and mirrored by all other replicas.

The write has a second use: the writer waits for it in its own stream. Its return measures the stream's lag, and its
absence shows that the mirror is stale, even if nothing else is ever written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from hascheduler.model.schema_version import INDEX_GENERATION, UNSTATED_VERSION
from hascheduler.model.values.instants import WallMs
from hascheduler.schema.forms import Flag, Instant, Integer
from hascheduler.schema.noun import Part


@dataclass(frozen=True, slots=True)
class LastCheck:
    """The time of this replica's last check of the invariants as the leader, and its count of findings by kind."""

    at_ms: WallMs
    counts: Mapping[str, int] = field(default_factory=dict)


class ReplicaFields(Part):
    """What is stored of a replica and shown."""

    id_field = "id"

    id: str = Field(examples=["replica-2.5f2c9a01"])
    """Unique per process start"""
    name: str = Field(examples=["replica-2"])
    """The name of the replica; it may stay the same after a restart"""
    version: str | None = Field(default=None, examples=["0.2.0"])
    """The version of its software; null if not reported, as before 0.2.0"""
    zone_data: str | None = Field(default=None, examples=["2029c"])
    """The release of its time-zone data; null if not reported, as in 0.2.0"""
    started_at_ms: Instant = Field(examples=["2029-12-31T09:00:00.000Z"])
    """When its process started"""
    http_endpoint: str = Field(examples=["10.0.0.12:8080"])
    """`host:port` of its API"""
    liveness_endpoint: str = Field(examples=["10.0.0.12:40211"])
    """`host:port` where it proves that its process is alive"""
    ready: Flag = Field(default=False, examples=[True])
    """True if it reported that it is ready and is still alive"""
    stream_lag_ms: Integer | None = Field(default=None, alias="stream_lag_ms", examples=[9])
    """Milliseconds that its last heartbeat took to come back through the change stream; null before the first"""
    position: str = Field(examples=["1893456030.1"])
    """The position of its mirror in the change stream: cluster time, as `seconds.increment`"""
    digest: str = Field(examples=["8c1f0a6be2d94c37"])
    """Digest of its mirror: equal digests at equal positions mean equal mirrors"""
    quarantined: Integer = Field(default=0, examples=[0])
    """How many documents it could not read"""


class ReplicaStatus(ReplicaFields):
    """A stored heartbeat of a replica; ``digest`` is its mirror's at ``position``.

    ``reads`` is the newest form of documents that it reads. ``marks`` are its digests at points of the stream that all
    replicas pass, newest last. ``decision_lag_ms`` is how long its decisions take to be applied; None if it makes none,
    or runs 0.2.0. ``broker_accepting``: RabbitMQ takes its messages; None in 0.2.0.
    """

    beat: Integer
    reads: Integer = UNSTATED_VERSION
    marks: tuple[tuple[str, str], ...] = ()
    last_check: LastCheck | None = None
    decision_lag_ms: Integer | None = None
    broker_accepting: Flag | None = None

    @classmethod
    def from_stored(cls, document: dict[str, Any]) -> dict[str, Any]:
        counts = {name: int(text) for name, text in _pairs(document.get("audited")) if _is_number(text)}
        at_ms = counts.pop("at", None)
        last_check = None if at_ms is None else LastCheck(WallMs(at_ms), counts)
        return {**document, "marks": tuple(_pairs(document.get("marks"))), "last_check": last_check}

    def to_stored(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with pairs as a text.

        The stream may deliver a part of an array, and a new field must never make the document unreadable. No mirror
        holds ``indexes``, which `hascheduler migrate` needs.
        """
        del fields["last_check"]
        last = self.last_check
        audited = None if last is None else _text([("at", last.at_ms), *last.counts.items()])
        return {**fields, "indexes": INDEX_GENERATION, "marks": _text(self.marks), "audited": audited}


class ReplicaResponse(ReplicaFields):
    """A replica, as the answering replica sees it."""

    alive: bool = Field(examples=[True])
    """True if its heartbeats still arrive; if not, all but its names and addresses is its last report"""


def show_replica(status: ReplicaStatus, *, alive: bool) -> ReplicaResponse:
    shown = {name: getattr(status, name) for name in ReplicaFields.model_fields}
    return ReplicaResponse(**shown | {"ready": alive and status.ready}, alive=alive)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16


def _text(pairs: Iterable[tuple[str, object]]) -> str:
    return " ".join(f"{name}={value}" for name, value in pairs)


def _pairs(value: object) -> list[tuple[str, str]]:
    """Return the pairs of ``name=value name=value`` without malformed words."""
    words = value.split(" ") if isinstance(value, str) else []
    return [(name, text) for name, is_pair, text in (word.rpartition("=") for word in words) if is_pair]
