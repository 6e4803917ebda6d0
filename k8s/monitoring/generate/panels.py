"""Panels as Grafana's JSON has them, without their place: `layout` gives each its id and position.

A panel says in its description what good looks like. Colours change where a person should look, never for decoration.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Panel = dict[str, Any]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}

_GOOD, _LOOK, _BAD = "green", "orange", "red"


def stat(
    title: str,
    query: str,
    description: str,
    *,
    unit: str = "none",
    legend: str = "",
    look_from: float | None = None,
    bad_from: float | None = None,
    bad_below: float | None = None,
    empty: str = "–",
    shows_name: bool = False,
) -> Panel:
    """The present value, large. ``shows_name`` shows the legend instead, for answers that are a name."""
    thresholds = _thresholds(look_from, bad_from, bad_below)
    return {
        **_panel("stat", title, description),
        "targets": [_target(query, legend, instant=True)],
        "fieldConfig": {
            "defaults": {"unit": unit, "noValue": empty, "color": {"mode": "thresholds"}, "thresholds": thresholds},
            "overrides": [],
        },
        "options": {
            "colorMode": "background" if len(thresholds["steps"]) > 1 else "value",
            "graphMode": "none",
            "justifyMode": "center",
            "orientation": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "textMode": "name" if shows_name else "value",
        },
    }


def lines(
    title: str,
    queries: Mapping[str, str],
    description: str,
    *,
    unit: str = "none",
    limit: float | None = None,
    limit_series: str = "",
    stacked: bool = False,
    least: float | None = 0,
) -> Panel:
    """Lines over time, one query a legend. In red: ``limit``, as a line, and the series named ``limit_series``."""
    custom: dict[str, Any] = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 25 if stacked else 5,
        "showPoints": "never",
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "off" if limit is None else "line"},
    }
    defaults: dict[str, Any] = {
        "unit": unit,
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "thresholds": _thresholds(None, limit, None),
    }
    if least is not None:
        defaults["min"] = least
    return {
        **_panel("timeseries", title, description),
        "targets": [
            _target(query, legend, ref=chr(ord("A") + number)) for number, (legend, query) in enumerate(queries.items())
        ],
        "fieldConfig": {"defaults": defaults, "overrides": [_as_limit(limit_series)] if limit_series else []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def table(title: str, query: str, description: str, columns: Sequence[str]) -> Panel:
    """The labels ``columns`` of the present series, and nothing else."""
    return {
        **_panel("table", title, description),
        "targets": [{**_target(query, "", instant=True), "format": "table"}],
        "transformations": [{"id": "filterFieldsByName", "options": {"include": {"names": list(columns)}}}],
        "fieldConfig": {"defaults": {"unit": "none", "noValue": "none"}, "overrides": []},
        "options": {"showHeader": True},
    }


def _panel(type: str, title: str, description: str) -> Panel:
    return {"type": type, "title": title, "description": description, "datasource": DATASOURCE}


def _target(query: str, legend: str, *, instant: bool = False, ref: str = "A") -> dict[str, Any]:
    return {
        "refId": ref,
        "datasource": DATASOURCE,
        "expr": query,
        "legendFormat": legend,
        "instant": instant,
        "range": not instant,
    }


def _thresholds(look_from: float | None, bad_from: float | None, bad_below: float | None) -> dict[str, Any]:
    if bad_below is not None:
        steps = [{"color": _BAD, "value": None}, {"color": _GOOD, "value": bad_below}]
    else:
        steps = [{"color": _GOOD, "value": None}]
    steps += [{"color": _LOOK, "value": look_from}] if look_from is not None else []
    steps += [{"color": _BAD, "value": bad_from}] if bad_from is not None else []
    return {"mode": "absolute", "steps": steps}


def _as_limit(legend: str) -> dict[str, Any]:
    return {
        "matcher": {"id": "byName", "options": legend},
        "properties": [
            {"id": "color", "value": {"mode": "fixed", "fixedColor": _BAD}},
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}},
            {"id": "custom.fillOpacity", "value": 0},
            {"id": "custom.stacking", "value": {"mode": "none", "group": "limit"}},
        ],
    }
