"""Names as the API server takes them, and the order in which objects come."""

import re
from collections import Counter
from collections.abc import Iterator

from tests.manifests.objects import Objects

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PORT = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")
_LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def names_are_valid(objects: Objects) -> Iterator[str]:
    for found in objects.all:
        if not _NAME.fullmatch(found["metadata"]["name"]):
            yield f"{found['kind']}/{found['metadata']['name']} is no name"
        for key, value in found["metadata"].get("labels", {}).items():
            if not _LABEL.fullmatch(value):
                yield f"{found['kind']}/{found['metadata']['name']}: label {key}: {value}"
    for pod in objects.pods():
        names = [container.spec["name"] for container in pod.containers]
        ports = [port for container in pod.containers for port in container.spec.get("ports", [])]
        yield from (f"{pod.name}: {name} is no name" for name in [*names, *pod.volumes] if not _NAME.fullmatch(name))
        yield from (f"{pod.name}: port {port['name']}" for port in ports if not _PORT.fullmatch(port["name"]))
        for what, values in (("name", names), ("port", [port["containerPort"] for port in ports])):
            yield from (f"{pod.name}: {what} {value} twice" for value, count in Counter(values).items() if count > 1)


def all_is_in_one_namespace(objects: Objects) -> Iterator[str]:
    """Which comes first, as the others would be refused without it."""
    if [found["kind"] for found in objects.all].index("Namespace") != 0:
        yield "the namespace is not the first"
    [namespace] = objects.of("Namespace")
    for found in objects.all:
        where = found["metadata"].get("namespace")
        if found["kind"] != "Namespace" and where != namespace["metadata"]["name"]:
            yield f"{found['kind']}/{found['metadata']['name']} is in {where}"
        for subject in found.get("subjects", []):
            if subject["kind"] == "ServiceAccount" and subject.get("namespace") != namespace["metadata"]["name"]:
                yield f"{found['kind']}/{found['metadata']['name']}: is for an account in {subject.get('namespace')}"
