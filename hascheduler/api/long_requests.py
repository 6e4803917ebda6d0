"""Requests that are held open until something happens: which they are, and for how long.

How many at once: `hascheduler.api.pools`.
"""

from starlette.types import Scope

WAIT_S_MAX = 300
"""The longest that a submit may wait for the end of its job, or a worker for work."""
RECORDING_S_MAX = 3_600
EVENTS_S_MAX = 3_600
_MARGIN_S = 30

_PATIENCE_S = {
    ("GET", "/v1/cluster/recording"): RECORDING_S_MAX + _MARGIN_S,
    ("GET", "/v1/events"): EVENTS_S_MAX + _MARGIN_S,
    ("POST", "/v1/work/fetch"): WAIT_S_MAX + _MARGIN_S,
}
_WAITING = ("POST", "/v1/jobs")


def patience_s(scope: Scope) -> int | None:
    """How long such a request may take; None: it is none of them."""
    asked = (scope["method"], scope["path"])
    if asked == _WAITING and b"wait=" in scope.get("query_string", b""):
        return WAIT_S_MAX + _MARGIN_S
    return _PATIENCE_S.get(asked)
