"""The one table of how each route of the API finds its shard. A test compares it with the OpenAPI document."""

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from starlette.routing import compile_path
from starlette.types import Scope


class Rule(Enum):
    HOME = auto()
    """The home."""
    NOUN = auto()
    """The home, as it changes what all share; it is copied into all shards before the answer is sent."""
    SUBMIT = auto()
    """The tenant in the body."""
    BATCH = auto()
    """The tenants of its jobs."""
    JOB = auto()
    """The partition in the id, or of the schedule's name in it; else one shard after the other."""
    CREATE = auto()
    """As `SUBMIT`, under a name that is reserved in the home."""
    SCHEDULE = auto()
    """The partition of the name; else one shard after the other."""
    LIST = auto()
    """The tenant in the query; else all shards, and one answer."""
    CHANGE = auto()
    """The tenant in the filter; else one shard after the other, and one answer."""
    WHOLE = auto()
    """All shards, and one answer, whoever asks."""
    STREAM = auto()
    """The shard in the query, or the tenant's until it moves; else all shards as one stream."""
    WORK = auto()
    """The shard in the processor's id; a registration goes where processors are lacked the most."""


NOUNS = ("definitions", "lanes", "calendars", "tenants")
_JOB, _SCHEDULE = "/v1/jobs/{id}", "/v1/schedules/{name}"
PREVIEW = f"{_SCHEDULE}/preview"
EVENTS = "/v1/events"
REGISTER, FETCH, HEARTBEAT = "/v1/work/processors", "/v1/work/fetch", "/v1/work/heartbeat"
ROUTES: Mapping[Rule, Sequence[str]] = {
    Rule.HOME: (
        *(f"GET /{probe}" for probe in ("livez", "readyz", "leaderz", "metrics")),
        *(f"GET /v1/{noun}{one}" for noun in NOUNS for one in ("", "/{name}")),
        *("POST /v1/tokens", "GET /v1/tokens", "DELETE /v1/tokens/{id}", "GET /v1/whoami", "GET /v1/audit"),
        *("GET /v1/cluster/recording", "POST /v1/schedules/preview"),
    ),
    Rule.NOUN: (
        *(f"{method} /v1/{noun}/{{name}}" for noun in NOUNS for method in ("PUT", "PATCH", "DELETE")),
        *(f"POST /v1/processors/{{name}}/{verb}" for verb in ("drain", "undrain")),
        *("POST /v1/cluster/pause", "POST /v1/cluster/resume"),
    ),
    Rule.SUBMIT: ("POST /v1/jobs",),
    Rule.BATCH: ("POST /v1/jobs:batch",),
    Rule.JOB: (
        *(f"GET {_JOB}", f"GET {_JOB}/why"),
        *(f"POST {_JOB}/{verb}" for verb in ("cancel", "reprioritize", "retry")),
    ),
    Rule.CREATE: ("POST /v1/schedules",),
    Rule.SCHEDULE: (
        *(f"{method} {_SCHEDULE}" for method in ("GET", "PUT", "PATCH", "DELETE")),
        *(f"POST {_SCHEDULE}/{verb}" for verb in ("pause", "resume", "reset", "trigger", "backfill")),
        *(f"GET {PREVIEW}", f"POST {PREVIEW}", f"GET {_SCHEDULE}/verdicts"),
    ),
    Rule.LIST: (
        *("GET /v1/jobs", "GET /v1/jobs:counts", "GET /v1/jobs:errors"),
        *("GET /v1/schedules", "GET /v1/schedules:counts", "GET /v1/schedules:recent"),
        *("GET /v1/verdicts", "GET /v1/timeline"),
    ),
    Rule.CHANGE: (
        *(f"POST /v1/jobs:{verb}" for verb in ("cancel", "reprioritize", "retry", "delete")),
        *(f"POST /v1/schedules:{verb}" for verb in ("pause", "resume", "reset", "trigger")),
    ),
    Rule.WHOLE: ("GET /v1/processors", "GET /v1/cluster", "GET /v1/cluster/failovers"),
    Rule.STREAM: (f"GET {EVENTS}", "GET /v1/cluster/live"),
    Rule.WORK: (
        *(f"POST {REGISTER}", f"DELETE {REGISTER}/{{id}}", f"POST {FETCH}", f"POST {HEARTBEAT}"),
        *(f"POST /v1/work/{verb}" for verb in ("start", "finish")),
    ),
}


class RuledRoute(NamedTuple):
    rule: Rule
    method: str
    pattern: str

    @property
    def writes(self) -> bool:
        """Return True if a request may change something of a tenant."""
        return self.method != "GET" and self.pattern != PREVIEW


_EXACT: Mapping[tuple[str, str], RuledRoute] = {
    (method, pattern): RuledRoute(rule, method, pattern)
    for rule, routes in ROUTES.items()
    for method, _, pattern in (route.partition(" ") for route in routes)
}
_PATTERNS = [(compile_path(route.pattern)[0], route) for route in _EXACT.values() if "{" in route.pattern]


def matched(scope: Scope) -> tuple[RuledRoute, Mapping[str, str]] | None:
    """Return the route of a request and its parameters; None for pages and unknown paths."""
    route = _EXACT.get((scope["method"], scope["path"]))
    if route is not None:
        return route, {}
    for pattern, route in _PATTERNS:
        found = pattern.fullmatch(scope["path"]) if route.method == scope["method"] else None
        if found is not None:
            return route, found.groupdict()
    return None
