"""``/metrics``: what this replica counts and what it sees of the whole, for Prometheus."""

from fastapi import APIRouter, Response

from hascheduler.api.access import ViewerOfAll
from hascheduler.api.services import Services
from hascheduler.telemetry.registry import CONTENT_TYPE, text_of

router = APIRouter(tags=["health"])


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(services: Services, caller: ViewerOfAll) -> Response:
    """Counters, histograms and gauges in the text format of Prometheus."""
    return Response(text_of(services.metrics.registry), headers={"Content-Type": CONTENT_TYPE})
