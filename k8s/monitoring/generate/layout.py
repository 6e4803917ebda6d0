"""Gives every panel its id and place: rows from above, panels from the left, so many abreast in each row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from k8s.monitoring.generate.panels import Panel

_WIDTH = 24
"""Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Row:
    """``abreast`` panels side by side (a divisor of 24), each ``height`` high."""

    title: str
    panels: Sequence[Panel]
    abreast: int = 3
    height: int = 8


def placed(rows: Sequence[Row]) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    top = 0
    for row in rows:
        result.append(_heading(row.title, len(result) + 1, top))
        top += 1
        width = _WIDTH // row.abreast
        for number, panel in enumerate(row.panels):
            down, right = divmod(number, row.abreast)
            place = {"x": right * width, "y": top + down * row.height, "w": width, "h": row.height}
            result.append({"id": len(result) + 1, **panel, "gridPos": place})
        top += -(-len(row.panels) // row.abreast) * row.height
    return result


def _heading(title: str, id: int, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
    return {"id": id, "type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place}
