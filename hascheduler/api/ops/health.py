"""``/livez``, ``/readyz`` and ``/leaderz`` for supervisors and load balancers; ``/metrics`` for Prometheus."""

from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from hascheduler.api.middleware.auth import ViewerOfAll
from hascheduler.api.services import ApiServices, Services
from hascheduler.telemetry.health import Health, ReplicaHealth
from hascheduler.telemetry.registry import CONTENT_TYPE, text_of

router = APIRouter(tags=["health"])


class LiveResponse(BaseModel):
    alive: bool = Field(description="False: restart the process")
    reason: str = Field(default="", description="What is stuck; empty while it lives")


class ReadyResponse(BaseModel):
    ready: bool = Field(description="False: ask another replica")
    reason: str = Field(default="", description="Why not; empty while it is ready")


class LeadingResponse(BaseModel):
    leading: bool = Field(description="Whether this replica decides now")
    reason: str = Field(default="", description="Why not; empty while it leads")


@router.get("/livez", responses={503: {"model": LiveResponse, "description": "Restart the process"}})
async def live(services: Services, response: Response) -> LiveResponse:
    """Whether the loops still turn; 503 only for a wedged process."""
    reason = _health(services).not_alive()
    _say(response, reason)
    return LiveResponse(alive=not reason, reason=reason)


@router.get("/readyz", responses={503: {"model": ReadyResponse, "description": "Not now"}})
async def ready(services: Services, response: Response) -> ReadyResponse:
    """Whether the mirror is complete and fresh, and the replica is not about to end."""
    reason = _health(services).not_ready()
    _say(response, reason)
    return ReadyResponse(ready=not reason, reason=reason)


@router.get("/leaderz", responses={503: {"model": LeadingResponse, "description": "Another one leads, or none"}})
async def leads(services: Services, response: Response) -> LeadingResponse:
    """Whether this replica leads. One that does not is as ready and as alive as one that does."""
    reason = _health(services).not_leading()
    _say(response, reason)
    return LeadingResponse(leading=not reason, reason=reason)


def _health(services: ApiServices) -> Health:
    return services.health or ReplicaHealth(services.view)


def _say(response: Response, reason: str) -> None:
    if reason:
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE


metrics_router = APIRouter(tags=["health"])


@metrics_router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(services: Services, caller: ViewerOfAll) -> Response:
    """Counters, histograms and gauges in the text format of Prometheus."""
    return Response(text_of(services.metrics.registry), headers={"Content-Type": CONTENT_TYPE})
