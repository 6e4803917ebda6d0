"""Whether the indexes that a collection has leave room for those that it should have.

The server refuses an index of a name that is taken by one of another shape, and one whose shape another name has. Which
of the two is right is for people to decide: they are told of both, and how to drop the one that is there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo import IndexModel

from hascheduler.errors import DatabaseUnfit
from hascheduler.model.documents import Collection

_SHAPING = ("unique", "sparse", "partialFilterExpression", "expireAfterSeconds")
"""The options that make it another index."""


def demand_room(collection: Collection, models: Sequence[IndexModel], there: Mapping[str, Mapping[str, Any]]) -> None:
    """`DatabaseUnfit` where one of those that are ``there``, by their names, is in the way of one of ``models``."""
    for model in models:
        wanted = _shape(model.document)
        for name, info in there.items():
            if name == name_of(model) and _shape(info) != wanted:
                raise DatabaseUnfit(
                    f"the index {name!r} of {collection} is {_shown(_shape(info))}, and should be {_shown(wanted)};"
                    f' drop it once nobody needs it: db.{collection}.dropIndex("{name}")'
                )
            if name != name_of(model) and _shape(info) == wanted:
                raise DatabaseUnfit(
                    f"the index {name!r} of {collection} is in the place of {name_of(model)!r};"
                    f' drop it: db.{collection}.dropIndex("{name}")'
                )


def name_of(model: IndexModel) -> str:
    return str(model.document["name"])


def _shape(index: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    options = {name: index[name] for name in _SHAPING if name in index and index[name] not in (None, False)}
    if index.get("expireAfterSeconds") is not None:
        options["expireAfterSeconds"] = index["expireAfterSeconds"]  # 0 is one, and equals False
    return list(dict(index["key"]).items()), options


def _shown(shape: tuple[list[Any], dict[str, Any]]) -> str:
    keys, options = shape
    return ", ".join([f"on {', '.join(name for name, _ in keys)}", *(f"{name} {options[name]}" for name in options)])
