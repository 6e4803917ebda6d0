"""Metrics of the API's requests."""

from itertools import product

from prometheus_client import CollectorRegistry

from hascheduler.telemetry.registry import MetricsOwner

REASONS = ("starting", "tenant_pending", "total_pending", "dependencies", "rate", "never", "overload")
"""Why a submit is rejected.

The replica is starting, too many jobs wait, they come too fast, the batch is too large, or the leader is overloaded.
"""
POOLS = (
    "connections", "in_flight", "waits", "fetches", "followers", "viewers", "recordings", "changes", "forwarded",
    "large_bodies",
)  # fmt: skip
CROWDED_OUT = ("token_share", "address_share", "full")
"""Why a request or a connection is rejected: the share of its token or address is used up, or the pool is full."""
CUTS = ("slow_reader", "idle")
"""Why a connection was closed against its client's will."""
LEFT_OUT = ("stranger", "refusal", "queue")
"""Why a request left no audit record: no caller was identified, its caller was refused too often, or too many wait."""
_NO_ANSWER = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
NO_ROUTE = "none"
"""The route of requests that were rejected early or matched none."""


class HttpMetrics(MetricsOwner):
    """Counters and histograms of one API. Routes are patterns, so their number is bounded."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        self._requests = self._counter(
            "http_requests",
            "Requests by status; 499 if the client disconnected before the response",
            "method",
            "route",
            "status",
        )
        self._seconds = self._histogram(
            "http_request_duration_seconds",
            "Time from a request's head to the end of its response",
            _BUCKETS_S,
            "method",
            "route",
        )
        self._refusals = self._counter("submit_rejections", "Rejected submits", "reason", values=REASONS)
        self._crowded_out = self._counter(
            "http_rejections",
            "Requests and connections rejected because a pool, or the caller's share of it, was full",
            "pool",
            "reason",
        )
        for pool, why in product(POOLS, CROWDED_OUT):
            self._crowded_out.labels(pool, why)
        self._left_out = self._counter(
            "audit_records_lost",
            "Write requests without an audit record",
            "reason",
            values=LEFT_OUT,
        )
        self._cuts = self._counter(
            "connections_closed",
            "Connections closed because they were slow, or idle while the pool was full",
            "reason",
            values=CUTS,
        )

    def answered(self, method: str, route: str | None, status: int | None, seconds: float) -> None:
        """Count one request, from its head to the end of its answer.

        ``route`` is a pattern, or None if no route matched. ``status`` is None if there was no answer.
        """
        known = method if method in _METHODS else "other"
        pattern = route or NO_ROUTE
        self._requests.labels(known, pattern, str(status or _NO_ANSWER)).inc()
        self._seconds.labels(known, pattern).observe(seconds)

    def refused(self, reason: str) -> None:
        """Count a submit rejected for one of `REASONS`."""
        self._refusals.labels(reason).inc()

    def crowded_out(self, pool: str, reason: str) -> None:
        """Count a request rejected by one of `POOLS` for one of `CROWDED_OUT`."""
        self._crowded_out.labels(pool, reason).inc()

    def left_out_of_audit(self, reason: str) -> None:
        """Count requests without an audit record, for one of `LEFT_OUT`."""
        self._left_out.labels(reason).inc()

    def cut(self, reason: str) -> None:
        """Count a connection closed for one of `CUTS`."""
        self._cuts.labels(reason).inc()
