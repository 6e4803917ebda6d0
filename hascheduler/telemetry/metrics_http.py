"""What the API counts of its requests."""

from itertools import product

from prometheus_client import CollectorRegistry

from hascheduler.telemetry.registry import MetricsOwner

REASONS = ("starting", "tenant_pending", "total_pending", "dependencies", "rate", "never", "overload")
"""Why jobs are not let in: nothing is known yet, too many wait, they come too fast, there are too many at once, the
leader can't keep up."""
POOLS = (
    "connections", "in_flight", "waits", "fetches", "followers", "viewers", "recordings", "changes", "forwarded",
    "large_bodies",
)  # fmt: skip
CROWDED_OUT = ("token_share", "address_share", "full")
"""Why a request or a connection was not let in: its token's or address's share of a pool is used up, or the pool."""
CUTS = ("slow_reader", "idle")
"""Why a connection was ended that its client would have kept."""
LEFT_OUT = ("stranger", "refusal", "queue")
"""Why a request left no audit record: nobody was identified, its caller was refused too often, too many wait."""
_NO_ANSWER = 499
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
NO_ROUTE = "none"
"""For requests that came to no route: refused at the door, or nothing is there."""


class HttpMetrics(MetricsOwner):
    """Counters and histograms of one API. Routes are patterns, so there are only so many."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry)
        self._requests = self._counter(
            "http_requests",
            "Requests that were answered, or left without an answer (status 499)",
            "method",
            "route",
            "status",
        )
        self._seconds = self._histogram(
            "http_request_seconds", "From a request's head to the end of its answer", _BUCKETS_S, "method", "route"
        )
        self._refusals = self._counter("admission_refusals", "Submits that were not let in", "reason", values=REASONS)
        self._crowded_out = self._counter(
            "share_refusals",
            "Requests and connections for which a pool had no room, or their party no share left",
            "pool",
            "reason",
        )
        for pool, why in product(POOLS, CROWDED_OUT):
            self._crowded_out.labels(pool, why)
        self._left_out = self._counter(
            "audit_left_out",
            "Requests that were to change something and left no record in the audit log",
            "reason",
            values=LEFT_OUT,
        )
        self._cuts = self._counter(
            "connections_cut",
            "Connections that were cut: read too slowly, or idle when there was no room",
            "reason",
            values=CUTS,
        )

    def answered(self, method: str, route: str | None, status: int | None, seconds: float) -> None:
        """One request, from its head to the end of its answer. ``route`` is a pattern; None: it came to no route.
        ``status`` is None where it was left without an answer."""
        known = method if method in _METHODS else "other"
        pattern = route or NO_ROUTE
        self._requests.labels(known, pattern, str(status or _NO_ANSWER)).inc()
        self._seconds.labels(known, pattern).observe(seconds)

    def refused(self, reason: str) -> None:
        """Admission said no, for one of `REASONS`."""
        self._refusals.labels(reason).inc()

    def crowded_out(self, pool: str, reason: str) -> None:
        """One of `POOLS` said no, for one of `CROWDED_OUT`."""
        self._crowded_out.labels(pool, reason).inc()

    def left_out_of_audit(self, reason: str) -> None:
        """One of `LEFT_OUT`."""
        self._left_out.labels(reason).inc()

    def cut(self, reason: str) -> None:
        """One of `CUTS`."""
        self._cuts.labels(reason).inc()
