"""Refuses what a route does not declare: query parameters, one of them twice, a body where it takes none, and a key for
repeated requests where it knows none.

Otherwise ``DELETE …?dry_run=true`` would delete, a misspelt filter would find everything, and a request that was sent
again under its ``Idempotency-Key`` would be carried out twice. Only the routes' own declarations say what there is, so
a new route needs nothing for it. Unknown fields of bodies are refused by the models.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from hascheduler.api.http.problems import FieldError, ProblemError
from hascheduler.api.middleware.cross_site import READING
from hascheduler.model.values.error_texts import expected_name, quoted

IDEMPOTENCY_KEY = "Idempotency-Key"
_ERRORS_MAX = 10
_NOTHING = b"{}"


class OnlyDeclared:
    """The dependency of all routes of one app; it owns what each of them declares, read at its first query.

    ``honouring`` names the routes that take an ``Idempotency-Key``, for who sends one elsewhere.
    """

    def __init__(self, honouring: Sequence[str] = ()) -> None:
        self._honouring = honouring
        self._by_route: dict[int, tuple[APIRoute, Mapping[str, bool]]] = {}
        """By the route's id, as a route has no hash; the route itself is kept, so that its id stays its own."""

    async def __call__(self, request: Request) -> None:
        route = request.scope["route"]
        if route.body_field is None and _has_body(request) and not await _says_nothing(request):
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                "unexpected-body",
                f"{request.method} {request.scope['path']} takes no body; expected a request without one",
                # The rest of it is not read.
                headers={"Connection": "close"},
            )
        if IDEMPOTENCY_KEY in request.headers and request.method not in READING and not honours_key(route):
            raise _not_honoured(request, self._honouring)
        if not request.scope["query_string"]:
            return
        counts = Counter(name for name, _ in request.query_params.multi_items())
        errors = list(_errors(counts, self._declared_by(route)))
        if errors:
            raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(errors[0]), errors=errors)

    def _declared_by(self, route: APIRoute) -> Mapping[str, bool]:
        if id(route) not in self._by_route:
            self._by_route[id(route)] = route, dict(_declared(route.dependant))
        return self._by_route[id(route)][1]


def honours_key(route: APIRoute) -> bool:
    declared = (route.openapi_extra or {}).get("parameters", ())
    return any(parameter["name"] == IDEMPOTENCY_KEY for parameter in declared)


def _not_honoured(request: Request, honouring: Sequence[str]) -> ProblemError:
    expected = f"no such header: {', '.join(honouring)} honour it"
    error = FieldError((IDEMPOTENCY_KEY,), f"{request.method} {request.scope['path']} does not honour it", expected)
    return ProblemError(HTTPStatus.BAD_REQUEST, "unexpected-header", str(error), errors=[error])


def _declared(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """The query parameters, each with whether it may be there several times."""
    for parameter in dependant.query_params:
        annotation = parameter.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            for name, field in annotation.model_fields.items():
                yield field.alias or name, get_origin(field.annotation) is list
        else:
            yield parameter.alias, get_origin(annotation) is list
    for each in dependant.dependencies:
        yield from _declared(each)


def _errors(counts: Mapping[str, int], declared: Mapping[str, bool]) -> Iterator[FieldError]:
    for name, count in list(counts.items())[:_ERRORS_MAX]:
        if name not in declared:
            yield FieldError((name,), "no such parameter", expected_name(name, declared))
        elif count > 1 and not declared[name]:
            yield FieldError((name,), f"{quoted(name)} is there {count} times", "each parameter once")


async def _says_nothing(request: Request) -> bool:
    """Whether the body is an empty object, which clients send that always send one."""
    return request.headers.get("content-length") == str(len(_NOTHING)) and await request.body() == _NOTHING


def _has_body(request: Request) -> bool:
    return "transfer-encoding" in request.headers or request.headers.get("content-length", "0").strip() != "0"
