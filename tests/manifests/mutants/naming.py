"""Names, labels, and the order of objects."""

from tests.manifests.mutants.places import Spoil, container_of
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, naming


def a_name_with_an_underscore(objects: Objects) -> None:
    objects.get("Service", "hascheduler")["metadata"]["name"] = "ha_scheduler"


def a_long_port_name(objects: Objects) -> None:
    container_of(objects)["ports"][0]["name"] = "the-port-of-the-api"


def a_port_twice(objects: Objects) -> None:
    container_of(objects)["ports"].append({"name": "metrics", "containerPort": 9090})


def another_namespace(objects: Objects) -> None:
    objects.get("Service", "rabbitmq")["metadata"]["namespace"] = "default"


def the_namespace_last(objects: Objects) -> None:
    objects.all.append(objects.all.pop(0))


def no_component(objects: Objects) -> None:
    del objects.get("Deployment", "bootstrap")["metadata"]["labels"]["app.kubernetes.io/component"]


def the_same_twice(objects: Objects) -> None:
    objects.all.append(objects.get("Service", "rabbitmq"))


def rights_for_an_account_of_another_namespace(objects: Objects) -> None:
    metadata = {"name": "scheduler", "namespace": "hascheduler"}
    subjects = [{"kind": "ServiceAccount", "name": "scheduler", "namespace": "jobs"}]
    objects.all.append({"kind": "RoleBinding", "metadata": metadata, "subjects": subjects})


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (naming.names_are_valid, a_name_with_an_underscore),
    (naming.names_are_valid, a_long_port_name),
    (naming.names_are_valid, a_port_twice),
    (naming.all_is_in_one_namespace, another_namespace),
    (naming.all_is_in_one_namespace, the_namespace_last),
    (naming.all_is_in_one_namespace, rights_for_an_account_of_another_namespace),
    (naming.labels_say_what_it_is, no_component),
    (naming.objects_are_told_once, the_same_twice),
)
