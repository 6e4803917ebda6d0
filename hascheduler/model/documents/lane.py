"""Stored lanes."""

from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.lane import PRIORITY_MAX, PROMOTE_AFTER_MS_DEFAULT, Lane
from hascheduler.model.policy import criteria
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import (
    Document,
    identifier,
    integer,
    is_integer,
    positive,
    text_or_none,
)

LANE_FIELDS = ("v", "rev", "weight", "promote_after_ms", "criteria", "owner")


def encode_lane(lane: Lane) -> dict[str, Any]:
    return {
        "_id": lane.name,
        "v": WRITTEN_VERSION,
        "rev": lane.rev,
        "weight": lane.weight,
        "promote_after_ms": list(lane.promote_after_ms),
        "criteria": None if lane.criteria is None else [criterion.value for criterion in lane.criteria],
        "owner": lane.owner,
    }


def decode_lane(id: object, fields: Document) -> Lane:
    require_known_version(fields)
    steps = fields.get("promote_after_ms", [PROMOTE_AFTER_MS_DEFAULT])
    if not isinstance(steps, list) or len(steps) not in (1, PRIORITY_MAX + 1) or not all(map(_is_positive, steps)):
        raise InvalidInput(("promote_after_ms",), f"{str(steps)[:64]}", f"a list of 1 or {PRIORITY_MAX + 1} spans")
    listed = fields.get("criteria")
    if listed is not None and not isinstance(listed, list):
        raise InvalidInput(("criteria",), f"a {type(listed).__name__}", "a list of criteria")
    return Lane(
        name=identifier(id),
        rev=integer(fields, "rev"),
        weight=positive(fields, "weight"),
        promote_after_ms=tuple(steps),
        criteria=None if listed is None else criteria(listed, "criteria"),
        owner=text_or_none(fields, "owner"),
    )


def _is_positive(value: object) -> bool:
    return is_integer(value) and value > 0
