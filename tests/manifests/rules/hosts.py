"""Names of hosts: each leads somewhere, and none says which namespace or which domain of a cluster this is."""

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from tests.manifests.objects import Objects

_URL = re.compile(r"[a-z+]+://(?:[^@/\s]*@)?([^/\s?]+)")
_PAIR = re.compile(r"(?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]*[A-Za-z][A-Za-z0-9-]*:[0-9]{2,5}(?![\w.])")
_OTHERS = ("prometheus-operated.monitoring.svc", "otel-collector.monitoring.svc")
"""What other namespaces have, where the component says so."""
_HERE = ("localhost", "127.0.0.1")
_FOR_OTHERS = ("dnsNames",)
"""A certificate is for the names that other namespaces and the sets of 0.2.0 use, too."""


def hosts_are_there(objects: Objects) -> Iterator[str]:
    """As a pod of the namespace looks them up: a Service, or a pod of a StatefulSet by its headless Service."""
    known = {*_OTHERS, *_HERE, *resolvable(objects)}
    for where, text in _texts(objects):
        for host in _hosts(text):
            if host not in known:
                yield f"{where}: {host} leads nowhere"


def no_namespace_is_written_out(objects: Objects) -> Iterator[str]:
    """So that an overlay with another `namespace:` works, in a cluster with another domain as well."""
    [namespace] = objects.of("Namespace")
    own = re.escape(namespace["metadata"]["name"])
    for where, text in _texts(objects):
        if re.search(rf"cluster\.local|\.{own}\.svc|\bnamespace *=~? *[\"']", text):
            yield f"{where}: {text[:200]}"


def resolvable(objects: Objects) -> set[str]:
    """Short names: pods complete them with their own namespace and the cluster's domain."""
    services = {found["metadata"]["name"]: found["spec"] for found in objects.of("Service")}
    pods = {
        f"{found['metadata']['name']}-{number}.{found['spec']['serviceName']}"
        for found in objects.of("StatefulSet")
        if services.get(found["spec"]["serviceName"], {}).get("clusterIP") == "None"
        for number in range(found["spec"].get("replicas", 1))
    }
    return {*services, *pods}


def _hosts(text: str) -> Iterator[str]:
    for group in [*_URL.findall(text), *_PAIR.findall(text)]:
        for host in group.split(","):
            yield host.rpartition(":")[0] if re.search(r":[0-9]+$", host) else host


def _texts(objects: Objects) -> Iterator[tuple[str, str]]:
    """Every text of what pods run with, and of the objects of others."""
    for found in objects.all:
        name = f"{found['kind']}/{found['metadata']['name']}"
        match found["kind"]:
            case "Secret":
                yield from ((name, b64decode(value).decode()) for value in found["data"].values())
            case "ConfigMap":
                yield from ((f"{name} {key}", value) for key, value in found["data"].items())
            case _:
                yield from ((name, text) for text in _strings(found.get("spec")))


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _strings(each)
        case dict():
            for key, each in value.items():
                if key not in _FOR_OTHERS and key != "image":
                    yield from _strings(each)
