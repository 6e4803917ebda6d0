"""``Warning`` headers (code 299) for accepted requests that are probably mistaken; the command line prints them.

A token of one tenant may not name an undefined lane at all.
"""

from fastapi import Response

from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name, quoted
from hascheduler.ports import ClusterView
from hascheduler.schema.lane import DEFAULT_LANE
from hascheduler.schema.refusals import Path


def warn_of_lane(response: Response, lane: str, view: ClusterView) -> None:
    """Warn of an undefined lane: it has the defaults, so a misspelt one escapes the intended limits."""
    lanes = view.lanes()
    if lane != DEFAULT_LANE and lane not in lanes:
        meant = expected_name(lane, (DEFAULT_LANE, *lanes), f"{DEFAULT_LANE}, or a lane of /v1/lanes")
        text = f"lane: no lane {quoted(lane)} is defined, so it has the default values; expected {meant}"
        # Header values are ASCII: other characters are sent as Python would write them.
        plain = text.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\").replace('"', '\\"')
        response.headers.append("Warning", f'299 - "{plain}"')


def require_lane(lane: str, caller: Caller, view: ClusterView, path: Path = ("lane",)) -> None:
    """Raise `InvalidInput` if a token of one tenant names an undefined lane.

    Capacity is shared between lanes before it is shared between tenants, and an undefined lane has weight 1: a tenant
    that named a new lane for each job would get nearly all the starts.
    """
    if caller.only is not None and lane != DEFAULT_LANE and lane not in view.lanes():
        expected = f"{DEFAULT_LANE}, or a lane of /v1/lanes; a token for all tenants defines them"
        raise InvalidInput(path, f"lane {quoted(lane)} does not exist", expected)
