"""Whatever is named is there: ConfigMaps, Secrets and their keys, volumes, Services and whom they select."""

from base64 import b64decode
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.manifests.objects import Container, Object, Objects

MADE_OUTSIDE = {
    "hascheduler-mongodb": {"keyfile", "scheduler-password", "processor-password", "admin-password"},
    "hascheduler-rabbitmq": {"definitions.json"},
    "hascheduler-scheduler": {"mongodb-uri", "amqp-url", "admin-token"},
    "hascheduler-processor": {"mongodb-uri", "amqp-url"},
    "hascheduler-tls": {"ca.crt", "tls.crt", "tls.key"},
    "hascheduler-mongodb-tls": {"ca.crt", "tls.crt", "tls.key", "tls-combined.pem"},
    "hascheduler-rabbitmq-tls": {"ca.crt", "tls.crt", "tls.key"},
}
"""The Secrets that a person makes with `k8s/make-secrets`; cert-manager makes the last three as well."""


def configuration_is_there(objects: Objects) -> Iterator[str]:
    maps = {found["metadata"]["name"]: set(found["data"]) for found in objects.of("ConfigMap")}
    secrets = {found["metadata"]["name"]: set(found["data"]) for found in objects.of("Secret")} or MADE_OUTSIDE
    for pod in objects.pods():
        for volume in pod.volumes.values():
            if "configMap" in volume:
                yield from _missing(pod.name, volume["configMap"]["name"], volume["configMap"], maps)
            if "secret" in volume:
                yield from _missing(pod.name, volume["secret"]["secretName"], volume["secret"], secrets)
    for container in objects.containers():
        for source in container.spec.get("envFrom", []):
            if source.get("configMapRef", {}).get("name") not in maps:
                yield f"{container.name}: all variables of {source}"
        for variable in container.spec.get("env", []):
            source = variable.get("valueFrom", {})
            if source.keys() - {"fieldRef"}:
                yield f"{container.name}: {variable['name']} from {source}; secrets are files, settings come together"


def _missing(who: str, name: str, volume: Object, known: dict[str, set[str]]) -> Iterator[str]:
    if name not in known:
        yield f"{who}: nothing is called {name}"
        return
    for item in volume.get("items", []):
        if item["key"] not in known[name]:
            yield f"{who}: {name} has no {item['key']}"


def volumes_are_there_and_used(objects: Objects) -> Iterator[str]:
    for pod in objects.pods():
        mounted = [mount for container in pod.containers for mount in container.spec.get("volumeMounts", [])]
        for name in {mount["name"] for mount in mounted} - set(pod.volumes):
            yield f"{pod.name}: there is no volume {name}"
        for name in set(pod.volumes) - {mount["name"] for mount in mounted}:
            yield f"{pod.name}: nothing mounts {name}"
        for container in pod.containers:
            paths = [mount["mountPath"] for mount in container.spec.get("volumeMounts", [])]
            if len(paths) != len(set(paths)):
                yield f"{container.name}: two volumes in one place"


def files_that_are_named_are_mounted(objects: Objects) -> Iterator[str]:
    """Every path below /run/secrets and /etc/hascheduler in a command or a variable, and in the files it names."""
    secrets = {found["metadata"]["name"]: set(found["data"]) for found in objects.of("Secret")} or MADE_OUTSIDE
    maps = {found["metadata"]["name"]: found["data"] for found in objects.of("ConfigMap")}
    for container in objects.containers():
        files: set[str] = set()
        folders: set[str] = set()
        texts: list[str] = []
        for mount in container.spec.get("volumeMounts", []):
            volume = container.pod.volumes.get(mount["name"], {})
            folders.add(mount["mountPath"])
            keys: set[str] = set()
            if "secret" in volume:
                keys = secrets.get(volume["secret"]["secretName"], set())
                keys = {item["path"] for item in volume["secret"].get("items", [])} or keys
            if "configMap" in volume:
                content = maps.get(volume["configMap"]["name"], {})
                keys, texts = set(content), [*texts, *content.values()]
            files |= {f"{mount['mountPath']}/{key}" for key in keys}
        for path in sorted(set(_paths(container, objects, texts)) - files - folders):
            yield f"{container.name}: names {path}, which is not there"


def _paths(container: Container, objects: Objects, texts: list[str]) -> Iterator[str]:
    words = [*container.spec.get("command", []), *container.spec.get("args", []), *texts]
    words += [value for value in objects.settings(container).values() if isinstance(value, str)]
    for word in " ".join(words).replace("=", " ").split():
        path = PurePosixPath(word)
        if path.is_absolute() and (path.is_relative_to("/run/secrets") or path.is_relative_to("/etc/hascheduler")):
            yield str(path)


def services_reach_ports(objects: Objects) -> Iterator[str]:
    for service in objects.of("Service"):
        name = f"Service/{service['metadata']['name']}"
        pods = objects.pods_with({"matchLabels": service["spec"]["selector"]})
        if not pods:
            yield f"{name} selects nothing"
        for pod in pods:
            for port in service["spec"]["ports"]:
                if port.get("targetPort") not in pod.ports:
                    yield f"{name}: {pod.name} has no port {port.get('targetPort')}"
                elif port["port"] != pod.ports[port["targetPort"]]:
                    yield f"{name}: port {port['port']} leads to {pod.ports[port['targetPort']]}; one number for both"


def routes_lead_to_services(objects: Objects) -> Iterator[str]:
    """And over HTTP/1.1: `appProtocol` would say otherwise, and two versions on one way are what smuggling takes."""
    ports = {
        (service["metadata"]["name"], key)
        for service in objects.of("Service")
        for port in service["spec"]["ports"]
        for key in (port["name"], port["port"])
        if "appProtocol" not in port
    }
    for route in objects.of("Ingress", "HTTPRoute"):
        for name, port in _backends(route):
            if (name, port) not in ports:
                yield f"{route['kind']}/{route['metadata']['name']} leads to {name}:{port}"


def _backends(route: Object) -> Iterator[tuple[str, str | int]]:
    for rule in route["spec"]["rules"]:
        yield from ((found["name"], found["port"]) for found in rule.get("backendRefs", []))
        services = [path["backend"]["service"] for path in rule.get("http", {}).get("paths", [])]
        yield from ((found["name"], found["port"].get("name") or found["port"]["number"]) for found in services)


def owners_are_there(objects: Objects) -> Iterator[str]:
    """Service accounts, headless Services, what budgets select and autoscalers scale."""
    accounts = {found["metadata"]["name"] for found in objects.of("ServiceAccount")}
    services = {found["metadata"]["name"] for found in objects.of("Service")}
    for pod in objects.pods():
        if pod.spec.get("serviceAccountName") not in accounts:
            yield f"{pod.name}: there is no service account {pod.spec.get('serviceAccountName')}"
        if pod.owner["kind"] == "StatefulSet" and pod.owner["spec"]["serviceName"] not in services:
            yield f"{pod.name}: there is no service {pod.owner['spec']['serviceName']}"
    for budget in objects.of("PodDisruptionBudget"):
        if not objects.pods_with(budget["spec"]["selector"]):
            yield f"PodDisruptionBudget/{budget['metadata']['name']} selects nothing"
    deployments = {found["metadata"]["name"]: found for found in objects.of("Deployment")}
    for scaler in objects.of("HorizontalPodAutoscaler", "ScaledObject"):
        target = deployments.get(scaler["spec"]["scaleTargetRef"]["name"])
        if target is None:
            yield f"{scaler['kind']}/{scaler['metadata']['name']} scales nothing"
        elif "replicas" in target["spec"]:
            yield f"Deployment/{target['metadata']['name']}: each apply would undo what {scaler['kind']} has done"


def secrets_are_for_development_or_outside(objects: Objects) -> Iterator[str]:
    """Those that are here say what they are; a password in a variable, an argument or a ConfigMap is none."""
    for secret in objects.of("Secret"):
        for key, value in secret["data"].items():
            text = b64decode(value).decode()
            if key != "definitions.json" and "development" not in text.lower():
                yield f"Secret/{secret['metadata']['name']}: {key} does not say that it is for development"
    for container in objects.containers():
        words = [*container.spec.get("args", []), *container.spec.get("command", [])]
        for name, value in objects.settings(container).items():
            words.append(f"{name}={value}")
            if isinstance(value, str) and name.endswith(("MONGODB_URI", "AMQP_URL", "TOKEN", "PASSWORD", "HEADERS")):
                yield f"{container.name}: {name} is no file"
        for word in words:
            if "://" in word and "@" in word:
                yield f"{container.name}: {word.split('@')[0]}@… holds a password"
