"""The stored routing of a deployment of several shards."""

from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.routing import Routing
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import Document, integer, is_integer, positive

ROUTING_ID = "routing"
ROUTING_FIELDS = ("v", "rev", "epoch", "shards", "slots", "moving", "leaving")


def encode_routing(routing: Routing) -> dict[str, Any]:
    under_way = {"moving": routing.moving, "leaving": routing.leaving}
    return {
        "_id": ROUTING_ID,
        "v": WRITTEN_VERSION,
        "rev": routing.epoch,
        "epoch": routing.epoch,
        "shards": list(routing.shards),
        "slots": list(routing.shard_of_slot),
        **{name: [list(pair) for pair in sorted(slots.items())] for name, slots in under_way.items() if slots},
    }


def decode_routing(fields: Document) -> Routing:
    """`InvalidInput` for a document that is malformed."""
    require_known_version(fields)
    shards, slots = fields.get("shards"), fields.get("slots")
    if not isinstance(shards, list) or not all(isinstance(name, str) and name for name in shards):
        raise InvalidInput(("shards",), f"{str(shards)[:64]}", "a list of names")
    if not isinstance(slots, list) or not all(map(is_integer, slots)):
        raise InvalidInput(("slots",), f"{str(slots)[:64]}", "a list of indexes of shards")
    integer(fields, "rev")
    moving, leaving = _by_slot(fields, "moving"), _by_slot(fields, "leaving")
    return Routing(positive(fields, "epoch"), tuple(shards), tuple(slots), moving, leaving)


def _by_slot(fields: Document, name: str) -> dict[int, int]:
    rows = fields.get(name, [])
    if not isinstance(rows, list) or not all(_is_pair(row) for row in rows):
        raise InvalidInput((name,), f"{str(rows)[:64]}", "a list of slots, each with the index of a shard")
    return dict(rows)


def _is_pair(row: object) -> bool:
    return isinstance(row, list) and len(row) == 2 and all(map(is_integer, row))
