"""How long a request may take.

Most requests have 30 s; those that are held open until something happens have longer. How many may be in flight or
held open is up to `hascheduler.api.http.limits`.
"""

from starlette.datastructures import QueryParams
from starlette.types import Scope

WAIT_S_MAX = 300
"""The longest that one may wait for the end of a job, or a worker for work."""
RECORDING_S_MAX = 3_600
EVENTS_S_MAX = 3_600
_ANSWER_S_MAX = 30
_MARGIN_S = 30

_LONG_S_MAX = {
    ("GET", "/v1/cluster/recording"): RECORDING_S_MAX + _MARGIN_S,
    ("GET", "/v1/cluster/live"): EVENTS_S_MAX + _MARGIN_S,
    ("GET", "/v1/events"): EVENTS_S_MAX + _MARGIN_S,
    ("POST", "/v1/work/fetch"): WAIT_S_MAX + _MARGIN_S,
}


def long_request_s_max(scope: Scope) -> int | None:
    """The time limit of a request that may be held open; None for all others."""
    method, path = request = (scope["method"], scope["path"])
    waits_for_job = request == ("POST", "/v1/jobs") or (method == "GET" and path.startswith("/v1/jobs/"))
    # Read as the route reads it: a name may be percent-encoded.
    if waits_for_job and scope.get("query_string") and "wait" in QueryParams(scope["query_string"]):
        return WAIT_S_MAX + _MARGIN_S
    return _LONG_S_MAX.get(request)


def time_limit_s(scope: Scope) -> int:
    """The time limit of any request."""
    limit_s = long_request_s_max(scope)
    return _ANSWER_S_MAX if limit_s is None else limit_s
