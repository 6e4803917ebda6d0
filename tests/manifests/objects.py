"""Rendered objects, and the questions that rules ask of them."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

_POD_OWNERS = ("Deployment", "StatefulSet", "Job", "DaemonSet", "CronJob")


@dataclass(frozen=True)
class Pod:
    """The pods that one object makes."""

    owner: Object
    labels: Mapping[str, str]
    spec: Object

    @property
    def name(self) -> str:
        return f"{self.owner['kind']}/{self.owner['metadata']['name']}"

    @property
    def containers(self) -> list["Container"]:
        """Those that stay, then those of the beginning."""
        return [
            *(Container(self, spec, initial=False) for spec in self.spec["containers"]),
            *(Container(self, spec, initial=True) for spec in self.spec.get("initContainers", [])),
        ]

    @property
    def volumes(self) -> dict[str, Object]:
        """By name, with those of a StatefulSet's claims."""
        claims = self.owner["spec"].get("volumeClaimTemplates", [])
        return {
            **{volume["name"]: volume for volume in self.spec.get("volumes", [])},
            **{claim["metadata"]["name"]: {"persistentVolumeClaim": claim} for claim in claims},
        }

    @property
    def ports(self) -> dict[str, int]:
        ports = [port for container in self.containers for port in container.spec.get("ports", [])]
        return {port["name"]: port["containerPort"] for port in ports}


@dataclass(frozen=True)
class Container:
    pod: Pod
    spec: Object
    initial: bool

    @property
    def name(self) -> str:
        return f"{self.pod.name} {self.spec['name']}"

    @property
    def idles(self) -> bool:
        """Whether it is there only for those of the beginning, which have done the work."""
        return bool(self.spec.get("command") == ["sleep", "infinity"])

    @property
    def is_ours(self) -> bool:
        """Whether it runs the command line of this project."""
        if self.idles:
            return False
        tagged = self.spec["image"].partition("@")[0]
        return tagged.rpartition(":")[0].rpartition("/")[2] in ("hascheduler", "hascheduler-processor")


class Objects:
    """Everything that one `kubectl apply` would send."""

    def __init__(self, all: list[Object]) -> None:
        self.all = all

    def copy(self) -> "Objects":
        return Objects(copy.deepcopy(self.all))

    def of(self, *kinds: str) -> list[Object]:
        return [found for found in self.all if found["kind"] in kinds]

    def get(self, kind: str, name: str) -> Object:
        """The one of that name, which may carry the hash of a generator after it."""
        found = [each for each in self.of(kind) if _plain(each["metadata"]["name"]) == name]
        assert len(found) == 1, f"{kind}/{name}: {[each['metadata']['name'] for each in found]}"
        return found[0]

    def pods(self) -> list[Pod]:
        return [Pod(owner, *_template(owner)) for owner in self.of(*_POD_OWNERS)]

    def containers(self) -> Iterator[Container]:
        for pod in self.pods():
            yield from pod.containers

    def pods_with(self, selector: Object) -> list[Pod]:
        return [pod for pod in self.pods() if selects(selector, pod.labels)]

    def settings(self, container: Container) -> dict[str, Any]:
        """The container's variables: a text, or the object that says where the value comes from."""
        found: dict[str, Any] = {}
        for source in container.spec.get("envFrom", []):
            name = source["configMapRef"]["name"]
            found |= {key: value for each in self.of("ConfigMap") if each["metadata"]["name"] == name
                      for key, value in each["data"].items()}  # fmt: skip
        for variable in container.spec.get("env", []):
            found[variable["name"]] = variable.get("value", variable.get("valueFrom"))
        return found


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """A label selector, as Kubernetes reads it; an empty one selects everything."""
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In", expression
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _template(owner: Object) -> tuple[Mapping[str, str], Object]:
    spec = owner["spec"]
    template = spec["jobTemplate"]["spec"]["template"] if owner["kind"] == "CronJob" else spec["template"]
    return template["metadata"].get("labels", {}), template["spec"]


def _plain(name: str) -> str:
    """Without the ten characters that a generator adds."""
    stem, _, tail = name.rpartition("-")
    return stem if len(tail) == 10 and stem.startswith(("hascheduler-", "mongodb-", "rabbitmq-")) else name
