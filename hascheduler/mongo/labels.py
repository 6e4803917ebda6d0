"""Finding documents by their labels, whose keys may hold a dot, which the name of a field in a query may not."""

from collections.abc import Mapping
from typing import Any


def labelled(labels: Mapping[str, str]) -> dict[str, Any]:
    """For ``$expr``: whether a document has all of these."""
    return {
        "$and": [
            {"$eq": [{"$getField": {"field": {"$literal": key}, "input": "$labels"}}, {"$literal": value}]}
            for key, value in labels.items()
        ]
    }
