"""Where mistakes are planted."""

from collections.abc import Callable

from tests.manifests.objects import Object, Objects

Spoil = Callable[[Objects], None]


def pod_of(objects: Objects, kind: str = "Deployment", name: str = "scheduler") -> Object:
    spec: Object = objects.get(kind, name)["spec"]["template"]["spec"]
    return spec


def container_of(objects: Objects, kind: str = "Deployment", name: str = "scheduler") -> Object:
    container: Object = pod_of(objects, kind, name)["containers"][0]
    return container


def add_variable(objects: Objects, name: str, value: str) -> None:
    container_of(objects)["env"].append({"name": name, "value": value})


def add_setting(objects: Objects, name: str, value: str) -> None:
    objects.get("ConfigMap", "hascheduler-settings")["data"][name] = value
