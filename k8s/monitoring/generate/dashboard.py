"""The whole dashboard, as Grafana's classic JSON model has it."""

from typing import Any

from k8s.monitoring.generate.layout import placed
from k8s.monitoring.generate.panels import DATASOURCE
from k8s.monitoring.generate.rows.api import API
from k8s.monitoring.generate.rows.fires import FIRES
from k8s.monitoring.generate.rows.leadership import LEADERSHIP
from k8s.monitoring.generate.rows.processes import PROCESSES
from k8s.monitoring.generate.rows.processors import PROCESSORS
from k8s.monitoring.generate.rows.queue import QUEUE
from k8s.monitoring.generate.rows.stores import STORES
from k8s.monitoring.generate.rows.well import WELL

_ROWS = (WELL, LEADERSHIP, FIRES, QUEUE, PROCESSORS, STORES, API, PROCESSES)
_SCHEMA = 39
"""Grafana 11 writes it; later ones read it, and migrate it by themselves."""


def dashboard() -> dict[str, Any]:
    return {
        "uid": "hascheduler",
        "title": "hascheduler",
        "description": "A highly available job scheduler: who leads, what fires, who waits, and what it rests on.",
        "tags": ["hascheduler"],
        "schemaVersion": _SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_datasource(), _namespace()]},
        "annotations": {"list": [_takeovers()]},
        "links": [],
        "panels": placed(_ROWS),
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}}


def _namespace() -> dict[str, Any]:
    """All of them stands for series without a namespace as well: processes outside Kubernetes."""
    query = "label_values(hascheduler_build_info, namespace)"
    return {
        "name": "namespace",
        "label": "Namespace",
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": "namespace"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _takeovers() -> dict[str, Any]:
    """A line through all panels wherever another replica took over."""
    return {
        "name": "Takeovers",
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": "orange",
        "expr": 'changes(max(hascheduler_term{namespace=~"$namespace"})[1m:15s]) > 0',
        "step": "60s",
        "titleFormat": "another replica leads",
    }
