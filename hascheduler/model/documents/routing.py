"""The stored routing of a deployment of several shards."""

from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.routing import Routing
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, integer, is_integer, positive

ROUTING_ID = "routing"
ROUTING_FIELDS = ("v", "rev", "epoch", "shards", "slots", "moving")


def encode_routing(routing: Routing) -> dict[str, Any]:
    moving = [[slot, to] for slot, to in sorted(routing.moving.items())]
    return {
        "_id": ROUTING_ID,
        "v": WRITTEN_VERSION,
        "rev": routing.epoch,
        "epoch": routing.epoch,
        "shards": list(routing.shards),
        "slots": list(routing.shard_of_slot),
        **({"moving": moving} if moving else {}),
    }


def decode_routing(fields: Document) -> Routing:
    """`InvalidInput` for a document that is malformed."""
    require_known_version(fields)
    shards, slots = fields.get("shards"), fields.get("slots")
    if not isinstance(shards, list) or not all(isinstance(name, str) and name for name in shards):
        raise InvalidInput(("shards",), f"{str(shards)[:64]}", "a list of names")
    if not isinstance(slots, list) or not all(map(is_integer, slots)):
        raise InvalidInput(("slots",), f"{str(slots)[:64]}", "a list of indexes of shards")
    moving = fields.get("moving", [])
    if not isinstance(moving, list) or not all(_is_pair(row) for row in moving):
        raise InvalidInput(("moving",), f"{str(moving)[:64]}", "a list of slots, each with the index of a shard")
    integer(fields, "rev")
    return Routing(positive(fields, "epoch"), tuple(shards), tuple(slots), dict(moving))


def _is_pair(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(map(is_integer, row))
