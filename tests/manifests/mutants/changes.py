"""What the next apply would stumble over."""

from tests.manifests.mutants.places import Spoil
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, changes


def a_version_in_the_selector(objects: Objects) -> None:
    for labels in (
        objects.get("Deployment", "scheduler")["spec"]["selector"]["matchLabels"],
        objects.get("Deployment", "scheduler")["spec"]["template"]["metadata"]["labels"],
    ):
        labels["app.kubernetes.io/version"] = "0.2.0"


def a_selector_of_others_too(objects: Objects) -> None:
    del objects.get("Deployment", "scheduler")["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]


def a_job(objects: Objects) -> None:
    pod = objects.get("Deployment", "bootstrap")["spec"]["template"]
    objects.all.append({"kind": "Job", "metadata": {"name": "bootstrap"}, "spec": {"selector": {}, "template": pod}})


def settings_under_a_fixed_name(objects: Objects) -> None:
    objects.get("ConfigMap", "hascheduler-settings")["metadata"]["name"] = "hascheduler-settings"


def a_class_of_one_provider(objects: Objects) -> None:
    claim = objects.get("StatefulSet", "mongodb")["spec"]["volumeClaimTemplates"][0]
    claim["spec"]["storageClassName"] = "gp3"


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (changes.selectors_never_change, a_version_in_the_selector),
    (changes.selectors_are_disjoint, a_selector_of_others_too),
    (changes.nothing_is_a_job, a_job),
    (changes.changed_configuration_rolls_pods, settings_under_a_fixed_name),
    (changes.claims_are_plain, a_class_of_one_provider),
)
