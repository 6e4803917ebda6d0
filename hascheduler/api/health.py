"""``/livez`` and ``/readyz``, for whoever restarts processes and routes requests."""

from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import BaseModel

from hascheduler.api.services import Services

router = APIRouter(tags=["health"])


class LiveResponse(BaseModel):
    alive: bool
    reason: str = ""


class ReadyResponse(BaseModel):
    ready: bool
    reason: str = ""


@router.get("/livez", responses={503: {"model": LiveResponse, "description": "Restart the process"}})
async def live(services: Services, response: Response) -> LiveResponse:
    """Whether the loops still turn; 503 only for a wedged process."""
    if services.view.alive:
        return LiveResponse(alive=True)
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return LiveResponse(alive=False, reason="the loops no longer turn")


@router.get("/readyz", responses={503: {"model": ReadyResponse, "description": "Not now"}})
async def ready(services: Services, response: Response) -> ReadyResponse:
    """Whether the mirror is complete and fresh."""
    if services.view.ready:
        return ReadyResponse(ready=True)
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return ReadyResponse(ready=False, reason=services.view.unready_reason)
