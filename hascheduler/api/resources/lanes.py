"""``/v1/lanes``: the classes of work, and how they share. A job of an unknown lane is in one with the defaults."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Response

from hascheduler.api.http.problems import problem_responses
from hascheduler.api.middleware.auth import AdminOfAll, Viewer
from hascheduler.api.resources.handler import GET, PATCH, ResourceHandler, patch_body, put_answers
from hascheduler.api.routing.queries import CheckedPathName, Page, Paging, PathName
from hascheduler.api.routing.revisions import IfMatch, IfNoneMatch
from hascheduler.api.routing.route_rules import JsonRoute
from hascheduler.api.services import Services
from hascheduler.schema.lane import Lane
from hascheduler.schema.noun import read_document
from hascheduler.wire.lane import LaneBody, LaneResponse

router = APIRouter(prefix="/lanes", tags=["lanes"], route_class=JsonRoute)

_lanes = ResourceHandler(
    "lane", lambda services: services.lanes, LaneBody, partial(read_document, Lane), LaneResponse.of
)

Patch = Annotated[dict[str, Any], patch_body("a lane", {"weight": 2, "policy": None})]


@router.put("/{name}", responses=put_answers(LaneResponse))
async def put_lane(
    name: CheckedPathName,
    body: LaneBody,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
    unless: IfNoneMatch,
) -> LaneResponse:
    """Create (201) or replace (200) a lane; with If-Match only replace, with If-None-Match: * only create it."""
    return await _lanes.put(name, body, services, response, precondition=precondition, unless=unless)


@router.get("", responses=problem_responses(422))
async def list_lanes(paging: Paging, services: Services, caller: Viewer) -> Page[LaneResponse]:
    """Lanes by name, a page at a time."""
    return await _lanes.list(paging, services)


@router.get("/{name}", response_model=LaneResponse, responses=GET)
async def get_lane(
    name: PathName, services: Services, caller: Viewer, response: Response, known: IfNoneMatch
) -> LaneResponse | Response:
    """One lane."""
    return await _lanes.get(name, services, response, known)


@router.patch("/{name}", responses=PATCH)
async def patch_lane(
    name: CheckedPathName,
    body: Patch,
    services: Services,
    caller: AdminOfAll,
    response: Response,
    *,
    precondition: IfMatch,
) -> LaneResponse:
    """Change parts of a lane: a JSON merge patch on what GET shows, which is then checked like a PUT."""
    return await _lanes.patch(name, body, services, response, precondition=precondition)


@router.delete("/{name}", status_code=HTTPStatus.NO_CONTENT, responses=problem_responses(404, 409, 412, 422))
async def delete_lane(name: PathName, services: Services, caller: AdminOfAll, precondition: IfMatch) -> None:
    """Delete a lane. Its jobs go on, in a lane with the defaults."""
    await _lanes.delete(name, services, precondition)
