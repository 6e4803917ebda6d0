"""``/metrics``: what this replica sees of the whole, for Prometheus. Nothing is counted here: each answer is made of
the view as it is then."""

from collections.abc import Iterator

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hascheduler.api.access import ViewerOfAll
from hascheduler.api.services import Services
from hascheduler.model.job import JobState
from hascheduler.ports import ClusterView

router = APIRouter(tags=["health"])

_LIVE = (JobState.PENDING, JobState.DISPATCHED, JobState.RUNNING)


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(services: Services, caller: ViewerOfAll) -> Response:
    """Gauges in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gauges(services.view))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _Gauges(Collector):
    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering does not collect."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        cluster = self._view.cluster()
        jobs = GaugeMetricFamily("hascheduler_jobs", "Jobs that have not ended, by state", labels=["state"])
        for state in _LIVE:
            jobs.add_metric([state.value], cluster.counts.get(state.value, 0))
        yield jobs
        yield GaugeMetricFamily(
            "hascheduler_jobs_unschedulable",
            "Pending jobs that no processor which lives could ever run; at most some thousands are counted",
            value=len(self._view.unschedulable()),
        )
        yield GaugeMetricFamily("hascheduler_leading", "1 on the replica that leads", value=cluster.leading)
        yield GaugeMetricFamily("hascheduler_ready", "1 while the mirror is complete and fresh", value=cluster.ready)
        yield GaugeMetricFamily("hascheduler_quarantined", "Documents that can't be read", value=cluster.quarantined)
        lag = GaugeMetricFamily("hascheduler_stream_lag_seconds", "How far the change stream is behind")
        if cluster.stream_lag_ms is not None:
            lag.add_metric([], cluster.stream_lag_ms / 1000)
        yield lag
