"""A change of leadership, as the new leader saw it: stored as one document for each term, and shown."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, Strict

from hascheduler.errors import InvalidInput
from hascheduler.model.schema_version import WRITTEN_VERSION
from hascheduler.model.values.fields import INTEGER_MAX
from hascheduler.schema.forms import Instant, Integer, whole
from hascheduler.schema.noun import Part, read_fields


class Cause(StrEnum):
    """How the lease became free."""

    FIRST = "first"
    """There was no leader before."""
    RELEASED = "released"
    """The holder gave it back."""
    DIED = "died"
    """The holder's process was proved dead."""
    STOOD_STILL = "stood_still"
    """The holder stalled and its process did not answer, so it was replaced before the lease lapsed."""
    LAPSED = "lapsed"
    """The lease was not renewed in time, or its holder no longer trusted it and took it again."""
    DELETED = "deleted"
    """The lease was deleted by hand."""


class Failover(Part):
    """How a replica came to lead."""

    term: Integer = Field(examples=[8])
    """The term that began"""
    shard: str = Field(examples=["default"])
    """The shard it leads; each shard counts its own terms"""
    holder: str = Field(min_length=1, examples=["replica-2.5f2c9a01"])
    """The id of the replica that took over"""
    cause: Annotated[Cause, Strict(False)] = Field(examples=["died"])
    """How the lease became free: there was no leader before (first), the leader gave it back (released), its process
    was proved dead (died), the leader stalled and was replaced early (stood_still), the lease was not renewed in
    time (lapsed), it was deleted by hand (deleted)"""
    deciding_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.140Z"])
    """When the new leader could decide, by its own clock"""
    gap_ms: Annotated[int, whole(0, INTEGER_MAX)] | None = Field(default=None, alias="gap_ms", examples=[120])
    """Milliseconds from the last sign of the previous leader until `deciding_at`; null if unknown"""
    first_decision_at_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:00.150Z"])
    """When the new leader made its first decision; null before it"""


def failover_id(shard: str, term: object) -> dict[str, Any]:
    return {"shard": shard, "term": term}


def encode_failover(failover: Failover) -> dict[str, Any]:
    fields = failover.model_dump(mode="json")
    return {"_id": failover_id(fields.pop("shard"), fields.pop("term")), "v": WRITTEN_VERSION, **fields}


def decode_failover(document: Mapping[str, Any]) -> Failover:
    """Return a report, without its gap if 0.2.0 wrote it; raise `InvalidInput` for a malformed document."""
    id = document.get("_id")
    return read_fields(Failover, {**document, **(id if isinstance(id, Mapping) else {})})


def readable_failovers(documents: Iterable[Mapping[str, Any]]) -> list[Failover]:
    """Return the reports that can be read."""
    found: list[Failover] = []
    for document in documents:
        with suppress(InvalidInput):
            found.append(decode_failover(document))
    return found
