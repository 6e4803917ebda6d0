"""Times that must fit into each other, and counts that must not fall too low."""

from collections.abc import Iterator
from math import ceil

from hascheduler.errors import InvalidInput
from hascheduler.shards.processors import SERVED_MAX
from tests.manifests.objects import Container, Objects
from tests.manifests.rules.commands import settings_of

_HANDOVER_S = 5
"""To give the lease back and write what is to be kept, with a database that is slow."""
_LAST_ANSWERS_S = 8
"""How long the API finishes what is in flight (`hascheduler.api.http.server`)."""
_GIVE_BACK_S = 10
"""For a processor to give back what has not ended within its grace."""


def graces_suffice(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        component = container.pod.labels.get("app.kubernetes.io/component")
        stop = container.spec.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        has = container.pod.spec.get("terminationGracePeriodSeconds", 30)
        needs = stop
        if component == "scheduler":
            needs += _HANDOVER_S + _LAST_ANSWERS_S
            if stop < 3:
                yield f"{container.name}: is told to end while requests still come"
        if component == "processor":
            needs += _GIVE_BACK_S + _setting_ms(objects, container, "drain_grace_ms") / 1_000
        if has < needs:
            yield f"{container.name}: is killed after {has} s and needs {needs:.0f}"


def waiting_at_the_start_is_no_failure(objects: Objects) -> Iterator[str]:
    """The process waits longest, then the rollout is said to have failed."""
    for container in objects.containers():
        owner = container.pod.owner
        if owner["kind"] == "Deployment":
            deadline = owner["spec"].get("progressDeadlineSeconds", 600)
            patience = _setting_ms(objects, container, "startup_patience_ms") / 1_000
            if deadline < patience + 60:
                yield f"{container.name}: the rollout fails after {deadline} s, the process waits {patience:.0f}"


def updates_leave_two_thirds(objects: Objects) -> Iterator[str]:
    for deployment in objects.of("Deployment"):
        name, spec = f"Deployment/{deployment['metadata']['name']}", deployment["spec"]
        update = spec.get("strategy", {}).get("rollingUpdate", {})
        if spec.get("strategy", {}).get("type") != "RollingUpdate" or not isinstance(update.get("maxUnavailable"), int):
            yield f"{name}: strategy {spec.get('strategy')}"
        elif update["maxUnavailable"] > spec.get("replicas", 2) / 2 or not update.get("maxSurge"):
            yield f"{name}: takes down {update['maxUnavailable']} at once"
        if not spec.get("minReadySeconds"):
            yield f"{name}: goes on before a new pod has stood for a while"
    for budget in objects.of("PodDisruptionBudget"):
        away = budget["spec"].get("maxUnavailable")
        if away != 1:
            yield f"PodDisruptionBudget/{budget['metadata']['name']}: {away} may be away"


def who_must_not_all_be_away_has_a_budget(objects: Objects) -> Iterator[str]:
    for pod in objects.pods():
        component = pod.labels.get("app.kubernetes.io/component")
        if component in ("scheduler", "processor", "mongodb"):
            budgets = [each for each in objects.of("PodDisruptionBudget")
                       if pod in objects.pods_with(each["spec"]["selector"])]  # fmt: skip
            if len(budgets) != 1:
                yield f"{pod.name} has {len(budgets)} disruption budgets"


def each_shard_has_a_processor(objects: Objects) -> Iterator[str]:
    """Two for every eight shards, whoever says how many there are at least: the autoscaler, or the Deployment."""
    [shards] = {settings_of(objects, container).shards for container in objects.containers() if container.is_ours}
    scalers = [found["spec"] for found in objects.of("HorizontalPodAutoscaler", "ScaledObject")]
    for spec in scalers or [objects.get("Deployment", "processor")["spec"]]:
        least = spec.get("minReplicas") or spec.get("minReplicaCount") or spec.get("replicas", 1)
        if least < 2 * ceil(shards / SERVED_MAX):
            yield f"{least} processors at least, for {shards} shards"


def _setting_ms(objects: Objects, container: Container, name: str) -> int:
    try:
        value: int = getattr(settings_of(objects, container), name)
    except InvalidInput:
        return 0  # told by another rule
    return value
