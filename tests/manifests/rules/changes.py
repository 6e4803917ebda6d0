"""What happens when another version is applied over this one: what can't change, and changes that must be seen."""

from collections.abc import Iterator

from tests.manifests.objects import Objects, selects

_SELECTOR = {"app.kubernetes.io/name", "app.kubernetes.io/component"}


def selectors_never_change(objects: Objects) -> Iterator[str]:
    """The API server refuses another selector; so it has what stays, and nothing like a version."""
    for pod in objects.pods():
        selector = pod.owner["spec"]["selector"]
        if set(selector.get("matchLabels", {})) != _SELECTOR or "matchExpressions" in selector:
            yield f"{pod.name}: selector {selector}"
        if not selects(selector, pod.labels):
            yield f"{pod.name} does not select its own pods"


def selectors_are_disjoint(objects: Objects) -> Iterator[str]:
    for pod in objects.pods():
        taken = [other.name for other in objects.pods_with(pod.owner["spec"]["selector"])]
        if taken != [pod.name]:
            yield f"{pod.name} selects the pods of {taken}"


def nothing_is_a_job(objects: Objects) -> Iterator[str]:
    """Nothing of a Job can change, so the next apply with another tag or setting would be refused."""
    for job in objects.of("Job"):
        yield f"Job/{job['metadata']['name']}: what runs to its end is an initial container"


def changed_configuration_rolls_pods(objects: Objects) -> Iterator[str]:
    """The generators' hash is in the name. Secrets from outside have none: who changes them restarts the pods."""
    for found in objects.of("ConfigMap", "Secret"):
        tail = found["metadata"]["name"].rpartition("-")[2]
        if len(tail) != 10 or not tail.isalnum():
            yield f"{found['kind']}/{found['metadata']['name']} has no hash in its name"


def claims_are_plain(objects: Objects) -> Iterator[str]:
    """A claim can't change either: the cluster's default class, and no label that may be another one day."""
    for pod in objects.pods():
        for claim in pod.owner["spec"].get("volumeClaimTemplates", []):
            if claim["metadata"].keys() != {"name"} or claim["spec"].keys() != {"accessModes", "resources"}:
                yield f"{pod.name}: claim {claim}"
