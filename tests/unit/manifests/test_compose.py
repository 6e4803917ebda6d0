"""`k8s/compose/compose.yaml` has the settings, servers and secrets of the overlay for kind, on loopback alone."""

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
import yaml

from hascheduler.model.values.instants import parse_duration
from tests.manifests.objects import Container
from tests.manifests.rendering import KIND, ROOT, rendered

FILE = ROOT / "k8s/compose/compose.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))["services"]
CONTAINERS = {
    "mongodb": "StatefulSet/mongodb mongodb",
    "rabbitmq": "StatefulSet/rabbitmq rabbitmq",
    "bootstrap": "Deployment/bootstrap replica-set",
    "migrate": "Deployment/bootstrap migrate",
    **{f"replica-{number}": "Deployment/scheduler scheduler" for number in (1, 2, 3)},
    **{f"processor-{number}": "Deployment/processor processor" for number in (1, 2)},
}
OF_PODS = {"POD_NAME", "MEMBERS"}
"""Variables that only arguments refer to."""


def container_of(service: str) -> Container:
    [found] = [one for one in rendered(KIND).containers() if one.name == CONTAINERS[service]]
    return found


def test_as_many_run() -> None:
    assert SERVICES.keys() == CONTAINERS.keys()
    for kind, name in (("Deployment", "scheduler"), ("Deployment", "processor"), ("StatefulSet", "mongodb")):
        count = sum(text.startswith(f"{kind}/{name} ") for text in CONTAINERS.values())
        assert rendered(KIND).get(kind, name)["spec"]["replicas"] == count


@pytest.mark.parametrize("service", CONTAINERS)
def test_a_service_is_a_container_of_the_overlay(service: str) -> None:
    here, there = SERVICES[service], container_of(service)
    assert here["image"] == there.spec["image"]
    settings = rendered(KIND).settings(there)
    own = dict.fromkeys((name for name, value in settings.items() if isinstance(value, dict)), service)
    wanted = {name: value for name, value in {**settings, **own}.items() if name not in OF_PODS}
    assert here.get("environment", {}) == wanted
    if there.is_ours:
        names = {f"$({name})": str(own.get(name, value)) for name, value in settings.items()}
        args = [_filled(word, names) for word in there.spec["args"]]
        assert here["command"] == args
        assert (here["read_only"], here["cap_drop"]) == (True, ["ALL"])
    else:
        assert here["user"] == f"{there.pod.spec['securityContext']['runAsUser']}:999"
    if not there.initial:
        assert parse_duration(here["stop_grace_period"], ()) == there.pod.spec["terminationGracePeriodSeconds"] * 1_000


def _filled(word: str, names: dict[str, str]) -> str:
    for reference, value in names.items():
        word = word.replace(reference, value)
    return word


@pytest.mark.parametrize("service", CONTAINERS)
def test_a_file_is_where_the_container_of_the_overlay_has_it(service: str) -> None:
    objects, pod = rendered(KIND), container_of(service).pod
    mounts = {one["mountPath"]: one["name"] for each in pod.containers for one in each.spec.get("volumeMounts", [])}
    for mount in SERVICES[service]["volumes"]:
        source, target, *_ = mount.split(":")
        if not source.startswith("."):
            continue
        [at] = [at for at in (target, str(Path(target).parent)) if at in mounts]
        volume, path = pod.volumes[mounts[at]], FILE.parent / source
        if "secret" in volume:
            data = objects.get("Secret", _stem(volume["secret"]["secretName"]))["data"]
            assert {file.name: file.read_bytes() for file in path.iterdir()} == {
                name: b64decode(value) for name, value in data.items()
            }
        else:
            config = objects.get("ConfigMap", _stem(volume["configMap"]["name"]))
            assert path.read_text("utf-8") == config["data"][Path(target).name]


def _stem(name: str) -> str:
    return name.rpartition("-")[0]


def test_ports_are_open_on_loopback_alone() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == len({port.split(":")[1] for port in ports}) == 3
    assert all(port.startswith("127.0.0.1:") and port.endswith(":8080") for port in ports)
