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

    FIRST = "first"  # there was no leader before
    RELEASED = "released"  # the holder gave it back
    DIED = "died"  # there was proof that the holder's process is dead
    STOOD_STILL = "stood_still"  # no sign of the holder, and its process did not answer: followed before it lapsed
    LAPSED = "lapsed"  # it was not renewed in time, or its holder no longer trusted it and took it again
    DELETED = "deleted"  # it was deleted by hand


class Failover(Part):
    """How a replica came to lead."""

    term: Integer = Field(examples=[8])
    """The number of the leadership that began"""
    shard: str = Field(examples=["default"])
    """Which shard it leads; terms are counted in each"""
    holder: str = Field(min_length=1, examples=["replica-2.5f2c9a01"])
    """The id of the replica that took over"""
    cause: Annotated[Cause, Strict(False)] = Field(examples=["died"])
    """How the lease became free: no leader before it (first), it was given back (released), its holder was proved dead
    (died), its holder stood still and was followed early (stood_still), it was not renewed in time (lapsed), it was
    deleted by hand (deleted)"""
    deciding_at_ms: Instant = Field(examples=["2030-01-01T00:00:00.140Z"])
    """When it could decide, by its own clock"""
    gap_ms: Annotated[int, whole(0, INTEGER_MAX)] | None = Field(default=None, alias="gap_ms", examples=[120])
    """From the last sign of the leader before until then; null if unknown"""
    first_decision_at_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:00.150Z"])
    """When it first decided something; null until then"""


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
