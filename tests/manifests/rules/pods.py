"""What every pod says: its exact image, what it needs, when it is well, and that it wants no token of the cluster."""

import re
from collections.abc import Iterator

from tests.manifests.objects import Container, Object, Objects, selects

_EXACT = re.compile(r"[a-z0-9][a-z0-9./:-]*:[0-9]+\.[0-9]+\.[0-9]+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?")
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "m": 10**-3, "": 1}


def images_are_exact_and_local(objects: Objects) -> Iterator[str]:
    """A tag of three numbers; taken from the node where it is there, as some clusters have no registry."""
    for container in objects.containers():
        if not _EXACT.fullmatch(container.spec["image"]):
            yield f"{container.name}: image {container.spec['image']}"
        if container.spec.get("imagePullPolicy") != "IfNotPresent":
            yield f"{container.name}: imagePullPolicy {container.spec.get('imagePullPolicy')}"


def resources_are_said(objects: Objects) -> Iterator[str]:
    for container in objects.containers():
        resources = container.spec.get("resources", {})
        for what in ("cpu", "memory"):
            request, limit = (resources.get(kind, {}).get(what) for kind in ("requests", "limits"))
            if request is None or limit is None:
                yield f"{container.name}: {what} {request} to {limit}"
            elif quantity(request) > quantity(limit):
                yield f"{container.name}: requests more {what} than its limit"


def probes_are_there(objects: Objects) -> Iterator[str]:
    """For all that stay; with patience: on a busy node an answer may take seconds."""
    for container in objects.containers():
        if container.initial or container.idles or container.pod.owner["kind"] == "Job":
            continue
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            probe = container.spec.get(name)
            if probe is None:
                yield f"{container.name}: no {name}"
            elif probe.get("timeoutSeconds", 1) < 3:
                yield f"{container.name}: {name} waits {probe.get('timeoutSeconds', 1)} s"


def probes_ask_what_answers(objects: Objects) -> Iterator[str]:
    """A port of the container; of ours the health port, and never readiness from liveness."""
    paths = {"startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    for container in objects.containers():
        ports = {port["name"] for port in container.spec.get("ports", [])}
        for name, path in paths.items():
            probe = container.spec.get(name, {})
            target = probe.get("httpGet") or probe.get("tcpSocket")
            if target and target["port"] not in ports:
                yield f"{container.name}: {name} asks port {target['port']}"
            if probe and container.is_ours and probe.get("httpGet") != {"path": path, "port": "health"}:
                yield f"{container.name}: {name} asks {target}"


def nobody_speaks_to_the_api_server(objects: Objects) -> Iterator[str]:
    """Except for who keeps the lease there; and that one may do nothing else."""
    keepers = [container.pod.spec["serviceAccountName"] for container in objects.containers()
               if objects.settings(container).get("HASCHEDULER_LEASE_STORE") == "kubernetes"]  # fmt: skip
    for pod in objects.pods():
        if pod.spec.get("automountServiceAccountToken") is not (pod.spec.get("serviceAccountName") in keepers):
            yield f"{pod.name}: gets a token that it does not need, or needs one that it does not get"
        if pod.spec.get("serviceAccountName", "default") == "default":
            yield f"{pod.name}: has no service account of its own"
    roles = {f"{role['kind']}/{role['metadata']['name']}": role["rules"] for role in objects.of("Role", "ClusterRole")}
    for binding in objects.of("RoleBinding", "ClusterRoleBinding"):
        rules = roles.pop(f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}", [])
        subjects = [(subject["kind"], subject["name"]) for subject in binding["subjects"]]
        if binding["kind"] == "ClusterRoleBinding" or subjects != [("ServiceAccount", keeper) for keeper in keepers]:
            yield f"{binding['kind']}/{binding['metadata']['name']}: gives rights to {subjects}"
        if not rules or not all(map(_is_about_the_lease, rules)):
            yield f"{binding['kind']}/{binding['metadata']['name']}: gives the rights {rules}"
    yield from (f"{role}: nothing uses it" for role in roles)


def _is_about_the_lease(rule: Object) -> bool:
    verbs, names = set(rule["verbs"]), rule.get("resourceNames", [])
    return (rule["apiGroups"], rule["resources"]) == (["coordination.k8s.io"], ["leases"]) and (
        (verbs <= {"get", "update"} and len(names) == 1) or (verbs == {"create"} and not names)
    )


def no_variables_from_services(objects: Objects) -> Iterator[str]:
    """The Service `hascheduler` would set HASCHEDULER_PORT, `rabbitmq` RABBITMQ_PORT, and those are settings."""
    for pod in objects.pods():
        if pod.spec.get("enableServiceLinks") is not False:
            yield f"{pod.name}: enableServiceLinks"


def replicas_are_spread(objects: Objects) -> Iterator[str]:
    """Over nodes, counting the pods of one rollout alone. Zones come first where they come at all: a component says for
    which clusters, as kube-scheduler ignores nodes without a label that a constraint is about."""
    for pod in objects.pods():
        if pod.owner["kind"] != "Deployment" or pod.owner["spec"].get("replicas", 2) < 2:
            continue
        spreads = pod.spec.get("topologySpreadConstraints", [])
        keys = [spread["topologyKey"] for spread in spreads]
        if keys not in (["kubernetes.io/hostname"], ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]):
            yield f"{pod.name}: is spread over {keys}"
        for spread in spreads:
            if spread.get("matchLabelKeys") != ["pod-template-hash"]:
                yield f"{pod.name}: counts pods of the last rollout, which are about to go"
            if (spread["maxSkew"], spread["whenUnsatisfiable"]) != (1, "ScheduleAnyway"):
                yield f"{pod.name}: {spread}"
            if not selects(spread["labelSelector"], pod.labels):
                yield f"{pod.name}: does not count its own pods"


def one_node_is_enough_for_development(objects: Objects) -> Iterator[str]:
    """Where MongoDB has one member: nothing is demanded that a node of two small CPUs can't give."""
    members = [found for found in objects.of("StatefulSet") if found["metadata"]["name"] == "mongodb"]
    if [found["spec"]["replicas"] for found in members] != [1]:
        return
    cpu = 0.0
    for pod in objects.pods():
        affinity = pod.spec.get("affinity", {}).get("podAntiAffinity", {})
        if "requiredDuringSchedulingIgnoredDuringExecution" in affinity or pod.spec.get("nodeSelector"):
            yield f"{pod.name}: demands a node of its own"
        spreads = pod.spec.get("topologySpreadConstraints", [])
        if any(spread["whenUnsatisfiable"] != "ScheduleAnyway" for spread in spreads):
            yield f"{pod.name}: demands several nodes"
        cpu += pod.owner["spec"].get("replicas", 1) * max(map(_cpu, pod.containers))
    if cpu > 0.8:
        yield f"all pods together request {cpu} CPUs"


def quantity(text: object) -> float:
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()  # type: ignore[union-attr]
    return float(number) * _UNITS[unit]


def _cpu(container: Container) -> float:
    return quantity(container.spec.get("resources", {}).get("requests", {}).get("cpu", 0))
