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
    alive: bool = Field(description="False if the process must be restarted")
    reason: str = Field(default="", description="What is stuck; empty if it is alive")


class ReadyResponse(BaseModel):
    ready: bool = Field(description="False if requests should go to another replica")
    reason: str = Field(default="", description="Why it is not ready; empty if it is")


class LeadingResponse(BaseModel):
    leading: bool = Field(description="True if this replica leads")
    reason: str = Field(default="", description="Why it does not lead; empty if it does")


@router.get("/livez", responses={503: {"model": LiveResponse, "description": "The process must be restarted"}})
async def live(services: Services, response: Response) -> LiveResponse:
    """Check that the process is alive; 503 only if its loops are stuck."""
    reason = _said(response, _health(services).not_alive())
    return LiveResponse(alive=not reason, reason=reason)


@router.get("/readyz", responses={503: {"model": ReadyResponse, "description": "Not ready now"}})
async def ready(services: Services, response: Response) -> ReadyResponse:
    """Check that the mirror is complete and fresh and the replica is not stopping."""
    reason = _said(response, _health(services).not_ready())
    return ReadyResponse(ready=not reason, reason=reason)


@router.get("/leaderz", responses={503: {"model": LeadingResponse, "description": "Another replica leads, or none"}})
async def leads(services: Services, response: Response) -> LeadingResponse:
    """Check if this replica leads. A replica that does not lead is just as ready and alive."""
    reason = _said(response, _health(services).not_leading())
    return LeadingResponse(leading=not reason, reason=reason)


def _health(services: ApiServices) -> Health:
    return services.health or ReplicaHealth(services.view)


def _said(response: Response, reason: str) -> str:
    if reason:
        response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    return reason


metrics_router = APIRouter(tags=["health"])


@metrics_router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(services: Services, caller: ViewerOfAll) -> Response:
    """Get the metrics in the text format of Prometheus."""
    return Response(text_of(services.metrics.registry), headers={"Content-Type": CONTENT_TYPE})
