"""A body costs nothing before its sender is known to have the power to send it, and never blocks the event loop."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from hascheduler.api.edge import Edge
from hascheduler.api.http import strict_json
from hascheduler.api.jobs import batch
from hascheduler.api.routing import route_rules
from hascheduler.api.routing.route_rules import BODY_BYTES_MAX
from hascheduler.model.token import Role
from tests.tiers import spread
from tests.unit.api.doubles import World, app_of, description
from tests.unit.security.greedy_bodies import BATCHES, FILLS, LARGE, REDACTIONS, SMALL
from tests.unit.security.loop_watch import Asked, Cost, cost_of, least_cost_of, stall_ms_max

ADDED_FACTOR_MAX = 4
LARGE_ADDED_BYTES_MAX = 24 * 1024 * 1024
WORKING_BYTES = 8 * 1024 * 1024
"""What the handling of a small body may take for a moment, and only one request at a time."""
ANSWER_BYTES_MAX = 4 * 1024 * 1024
PROBLEM_BYTES_MAX = 64 * 1024


@pytest.fixture(scope="module")
def app() -> Edge:
    return app_of(World())


def _large(fill: Callable[[int], bytes]) -> bytes:
    return b'{"jobs":' + fill(LARGE - 9) + b"}"


def _small(fill: Callable[[int], bytes]) -> bytes:
    return b'{"definition":"log","payload":' + fill(SMALL - 32) + b"}"


SWELLING = (
    "as many objects as are read", "as many keys as are read", "empty objects", "one long text",
    "a text that becomes four times as large", "texts that become four times as large", "as many values as are read",
    "fifty unknown fields each", "as much text as there is room",
)  # fmt: skip
"""Whose memory is measured too: that takes its time."""


def _rows() -> Iterator[Any]:
    for name, fill in FILLS.items():
        yield pytest.param("/v1/jobs:batch", lambda fill=fill: _large(fill), id=f"large: {name}")
        yield pytest.param("/v1/jobs", lambda fill=fill: _small(fill), id=f"small: {name}")
    for name, make in BATCHES.items():
        yield pytest.param("/v1/jobs:batch", make, id=f"a batch: {name}")
    for name, text in REDACTIONS.items():
        yield pytest.param("/v1/jobs", lambda text=text: text, id=f"redacted: {name}")


@pytest.mark.parametrize(("path", "make"), spread(_rows(), check=6))
def test_no_body_keeps_the_loop(app: Edge, path: str, make: Callable[[], bytes]) -> None:
    asked = Asked("POST", path, make())
    assert len(asked.body) <= (LARGE if path.endswith(":batch") else SMALL)
    cost = least_cost_of(app, asked)
    _check_stall(app, cost)
    assert len(cost.body) <= (ANSWER_BYTES_MAX if cost.status < 300 else PROBLEM_BYTES_MAX)


@pytest.mark.parametrize(
    ("path", "make"), spread([row for row in _rows() if str(row.id).partition(": ")[2] in SWELLING], check=2)
)
def test_no_body_swells(app: Edge, path: str, make: Callable[[], bytes]) -> None:
    _check_memory(cost_of(app, Asked("POST", path, make()), memory=True), path)


def _check_stall(app: Edge, cost: Cost) -> None:
    assert cost.status < 500
    assert cost.longest_ms <= stall_ms_max(app)


def _check_memory(cost: Cost, path: str) -> None:
    if path.endswith(":batch"):
        assert cost.added_bytes <= LARGE_ADDED_BYTES_MAX
    else:
        assert cost.added_bytes <= ADDED_FACTOR_MAX * BODY_BYTES_MAX + WORKING_BYTES


def _taking_a_body() -> list[tuple[str, str]]:
    return [
        (method.upper(), path)
        for path, operations in description()["paths"].items()
        for method, operation in operations.items()
        if "requestBody" in operation
    ]


def test_no_route_reads_the_body_of_a_caller_without_the_power(app: Edge) -> None:
    """Of all routes that OpenAPI says take a body; a worker may do nothing but work, and a viewer only look."""
    looking = {
        ("POST", "/v1/schedules/preview"),
        ("POST", "/v1/schedules/{name}/preview"),
    }
    taking = _taking_a_body()
    assert len(taking) > 20
    for method, path in taking:
        role = Role.WORKER if (method, path) in looking else Role.VIEWER
        cost = cost_of(app, Asked(method, path.replace("{name}", "a").replace("{id}", "a"), b"[" * 1_000, role))
        assert (method, path, cost.status, cost.received) == (method, path, 403, 0)


def test_no_route_reads_a_body_that_declares_too_much_or_another_type(app: Edge) -> None:
    for method, path in _taking_a_body():
        role = Role.WORKER if path.startswith("/v1/work") else Role.ADMIN
        asked = Asked(method, path.replace("{name}", "a").replace("{id}", "a"), b" " * (LARGE + 1), role)
        cost = cost_of(app, asked)
        assert (method, path, cost.status, cost.received) == (method, path, 413, 0)


def _wide(count: int) -> bytes:
    return orjson.dumps({f"unknown {n}": {"a": n} for n in range(count)})


def test_no_route_is_kept_by_thousands_of_unknown_fields(app: Edge) -> None:
    for method, path in spread(_taking_a_body(), check=8):
        role = Role.WORKER if path.startswith("/v1/work") else Role.ADMIN
        asked = Asked(method, path.replace("{name}", "a").replace("{id}", "a"), _wide(3_000), role)
        cost = least_cost_of(app, asked)
        assert (method, path, cost.status // 100) == (method, path, 4)
        assert cost.longest_ms <= stall_ms_max(app), (method, path)
        assert len(cost.body) <= PROBLEM_BYTES_MAX


def test_the_bound_of_values_is_said(app: Edge) -> None:
    cost = cost_of(app, Asked("POST", "/v1/jobs", _small(FILLS["small numbers"])))
    assert cost.status == 413
    assert "20000 values" in cost.problem["detail"]
    numbers = b'{"jobs":' + FILLS["small numbers"](LARGE // 8) + b"}"  # 131,068 of them
    batch = cost_of(app, Asked("POST", "/v1/jobs:batch", numbers))
    assert "100000 values" in batch.problem["detail"]


# Planted: what was there before turns the watch red.


def test_a_batch_that_is_read_without_pauses_is_caught(app: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_PAUSE_EVERY", 1_000)
    cost = cost_of(app, Asked("POST", "/v1/jobs:batch", BATCHES["fifty unknown fields each"]()))
    with pytest.raises(AssertionError):
        _check_stall(app, cost)


def test_a_reader_without_a_bound_of_values_is_caught(app: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "_marks", lambda _: 0)
    sent = _large(FILLS["empty lists"])
    with pytest.raises(AssertionError):
        _check_stall(app, cost_of(app, Asked("POST", "/v1/jobs:batch", sent)))
    with pytest.raises(AssertionError):
        _check_memory(cost_of(app, Asked("POST", "/v1/jobs:batch", sent), memory=True), "/v1/jobs:batch")


def test_a_route_that_reads_the_body_before_checking_is_caught(app: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_rules.JsonRoute, "_check_head", lambda *_: None)
    cost = cost_of(app, Asked("POST", "/v1/jobs:batch", b'{"jobs":[]}', Role.VIEWER))
    assert cost.received > 0
