"""Stored registrations of processors."""

from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.resources import decode_resources
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, identifier, integer, text, text_or_none

PROCESSOR_FIELDS = (
    "v", "name", "shard", "definitions", "slots", "beat", "draining", "parked", "resources",
    "registered_by", "liveness_endpoint", "consuming",
)  # fmt: skip


def encode_processor(processor: ProcessorRef) -> dict[str, Any]:
    return {
        "_id": processor.id,
        "v": WRITTEN_VERSION,
        **{name: getattr(processor, name) for name in PROCESSOR_FIELDS[1:]},
        "definitions": sorted(processor.definitions),
        "resources": dict(processor.resources),
        "liveness_endpoint": processor.liveness_endpoint or None,
    }


def decode_processor(id: object, fields: Document) -> ProcessorRef:
    require_known_version(fields)
    definitions = fields.get("definitions")
    if not isinstance(definitions, list) or not all(isinstance(name, str) for name in definitions):
        raise InvalidInput(("definitions",), "not a list of texts")
    return ProcessorRef(
        id=identifier(id),
        name=text(fields, "name"),
        shard=text(fields, "shard"),
        definitions=frozenset(definitions),
        slots=integer(fields, "slots"),
        beat=integer(fields, "beat"),
        draining=bool(fields.get("draining")),
        parked=integer(fields, "parked", default=0),
        resources=decode_resources(fields.get("resources")),
        registered_by=text_or_none(fields, "registered_by"),
        liveness_endpoint=text_or_none(fields, "liveness_endpoint") or "",
        consuming=fields.get("consuming") is not False,
    )
