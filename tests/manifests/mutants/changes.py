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


def a_job_that_stays(objects: Objects) -> None:
    del objects.get("Job", "bootstrap")["spec"]["ttlSecondsAfterFinished"]


def a_job_that_gives_up(objects: Objects) -> None:
    objects.get("Job", "bootstrap")["spec"]["backoffLimit"] = 0


def settings_under_a_fixed_name(objects: Objects) -> None:
    objects.get("ConfigMap", "hascheduler-settings")["metadata"]["name"] = "hascheduler-settings"


def a_class_of_one_provider(objects: Objects) -> None:
    claim = objects.get("StatefulSet", "mongodb")["spec"]["volumeClaimTemplates"][0]
    claim["spec"]["storageClassName"] = "gp3"


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (changes.selectors_never_change, a_version_in_the_selector),
    (changes.selectors_are_disjoint, a_selector_of_others_too),
    (changes.jobs_go_away, a_job_that_stays),
    (changes.jobs_go_away, a_job_that_gives_up),
    (changes.changed_configuration_rolls_pods, settings_under_a_fixed_name),
    (changes.claims_are_plain, a_class_of_one_provider),
)
