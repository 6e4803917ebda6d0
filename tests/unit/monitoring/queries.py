"""What PromQL expressions ask for, and what they may: what processes tell, what Prometheus adds, and nothing else."""

from collections.abc import Iterator
from datetime import timedelta

import promql_parser as promql

from tests.unit.telemetry.test_metrics import OF_PROCESSORS, OF_REPLICAS

TARGET_LABELS = ("namespace", "pod", "instance", "job")
"""What pod-monitors.yaml and prometheus.yaml both add."""
_OF_EVERY_PROCESS = """
    counter process_cpu_seconds_total
    gauge   process_resident_memory_bytes
    gauge   process_open_fds
"""
_OF_PROMETHEUS = """
    gauge up
    gauge ALERTS alertname alertstate severity
"""


def ours() -> set[str]:
    """What one of our own queries should ask for: of histograms, the buckets."""
    return {
        f"{name}_bucket" if kind == "histogram" else name for kind, name, _ in _rows(OF_REPLICAS) + _rows(OF_PROCESSORS)
    }


def told() -> dict[str, set[str]]:
    """Every series, with its labels."""
    series: dict[str, set[str]] = {}
    for kind, name, labels in _rows(OF_REPLICAS + OF_PROCESSORS + _OF_EVERY_PROCESS + _OF_PROMETHEUS):
        if kind == "histogram":
            series |= {f"{name}_bucket": {*labels, "le"}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            series[name] = labels
    return {name: {*labels, *TARGET_LABELS} for name, labels in series.items()}


def unknown(tree: promql.Expr, known: dict[str, set[str]]) -> set[str]:
    """What the expression asks for and nobody tells: names, labels of a name (``name.label``), labels of none."""
    wrong, labels = set[str](), set[str]()
    for selector in selectors(tree):
        name = selector.name or "?"
        labels |= known.get(name, set())
        asked = {f"{name}.{matcher.name}" for matcher in selector.matchers.matchers}
        wrong |= {name} - set(known) | asked - {f"{name}.{label}" for label in known.get(name, ())}
    return wrong | (set(grouped_by(tree)) - labels)


def _rows(lines: str) -> list[tuple[str, str, set[str]]]:
    words = [line.split() for line in lines.splitlines() if line.strip()]
    return [(kind, name, set(labels)) for kind, name, *labels in words]


# Expressions, read from their syntax trees


def parsed(expression: str) -> promql.Expr:
    """The tree; Grafana's own variables stand for what it would put there. `ValueError` where it is no PromQL."""
    return promql.parse(without_variables(expression))


def without_variables(expression: str) -> str:
    for variable, value in {"$__rate_interval": "1m", "$__range": "1h", "$namespace": ".*"}.items():
        expression = expression.replace(variable, value)
    return expression


def nodes(tree: promql.Expr) -> list[promql.Expr]:
    found: list[promql.Expr] = []
    promql.walk(tree, found.append)
    return found


def selectors(tree: promql.Expr) -> Iterator[promql.VectorSelector]:
    return (node for node in nodes(tree) if isinstance(node, promql.VectorSelector))


def ranges(tree: promql.Expr) -> Iterator[timedelta]:
    for node in nodes(tree):
        if isinstance(node, promql.MatrixSelector | promql.SubqueryExpr):
            assert node.range is not None
            yield node.range


def grouped_by(tree: promql.Expr) -> Iterator[str]:
    """The labels of every ``by``, ``on`` and ``group_left`` in it."""
    for node in nodes(tree):
        match node:
            case promql.AggregateExpr() if node.modifier is not None:
                yield from node.modifier.labels
            case promql.BinaryExpr() if node.modifier is not None:
                yield from node.modifier.group_labels or []
                if node.modifier.matching is not None:
                    yield from node.modifier.matching.labels
