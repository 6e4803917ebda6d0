"""``Warning`` headers (code 299) for accepted requests that are probably mistaken; the command line prints them.

A token of one tenant may not name an undefined lane at all.
"""

from collections.abc import Iterable
from itertools import chain, islice
from typing import Protocol

from fastapi import Response

from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import InvalidInput
from hascheduler.model.processor import supports
from hascheduler.model.values.error_texts import expected_name, near_names, quoted
from hascheduler.ports import ClusterView
from hascheduler.schema.lane import DEFAULT_LANE
from hascheduler.schema.refusals import Path

_OF_EACH_MAX = 10
_COMPARED_MAX = 200
"""How many names are searched for one that resembles a name: that takes about a millisecond."""


class _Job(Protocol):
    @property
    def definition(self) -> str: ...
    @property
    def lane(self) -> str: ...


def warn_of_names(
    response: Response, jobs: Iterable[_Job], view: ClusterView, *, on_failure: str | None = None
) -> None:
    """Warn of lanes that are undefined and of definitions that no processor runs, of at most ten each.

    An undefined lane has the defaults, so a misspelt one escapes the intended limits.
    """
    lanes: dict[str, None] = {}
    definitions: dict[str, None] = {}
    for job in jobs:
        lanes[job.lane] = definitions[job.definition] = None
    for lane in islice(lanes, _OF_EACH_MAX):
        if lane != DEFAULT_LANE and lane not in view.lanes():
            meant = expected_name(lane, (DEFAULT_LANE, *view.lanes()), f"{DEFAULT_LANE}, or a lane of /v1/lanes")
            _warn(response, f"lane: no lane {quoted(lane)} is defined, so it has the default values; expected {meant}")
    named = [("definition", definition) for definition in islice(definitions, _OF_EACH_MAX)]
    for field, definition in (*named, *([("on_failure", on_failure)] if on_failure else [])):
        if not any(supports(processor.definitions, definition) for processor in view.processors()):
            run = chain.from_iterable(processor.definitions for processor in view.processors())
            known = list(islice(dict.fromkeys(run), _COMPARED_MAX))
            near = near_names(definition, known, 3)
            meant = f"; they run {' and '.join(near)}" if near else ""
            _warn(response, f"{field}: no processor runs {quoted(definition)} now, so its jobs wait{meant}")


def _warn(response: Response, text: str) -> None:
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
