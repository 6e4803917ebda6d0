"""What a PromQL expression asks for, read from its syntax tree."""

from collections.abc import Iterator
from datetime import timedelta

import promql_parser as promql


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
