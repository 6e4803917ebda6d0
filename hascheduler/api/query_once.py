"""Each query parameter once, but for those that are lists: of two values one would be passed over in silence."""

from collections import Counter
from http import HTTPStatus

from fastapi import Depends, Request

from hascheduler.api.problems import FieldError, Refusal
from hascheduler.model.repr_limits import quoted

LISTS = frozenset({"label", "type", "verdict"})
"""Those of all routes that may be there several times."""


async def _each_once(request: Request) -> None:
    counts = Counter(name for name, _ in request.query_params.multi_items() if name not in LISTS)
    errors = [
        FieldError((name,), f"{quoted(name)} is there {count} times", "each parameter once")
        for name, count in counts.items()
        if count > 1
    ]
    if errors:
        raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(errors[0]), errors=errors)


EACH_ONCE = Depends(_each_once)
