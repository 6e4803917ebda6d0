"""Policies that miss."""

from tests.manifests.mutants.places import Spoil
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, network


def denies_nothing(objects: Objects) -> None:
    objects.all.remove(objects.get("NetworkPolicy", "default-deny"))


def denies_only_what_comes_in(objects: Objects) -> None:
    objects.get("NetworkPolicy", "default-deny")["spec"]["policyTypes"] = ["Ingress"]


def a_policy_about_nobody(objects: Objects) -> None:
    objects.get("NetworkPolicy", "rabbitmq")["spec"]["podSelector"]["matchLabels"] = {"app": "rabbitmq"}


def a_policy_for_a_port_that_is_not_there(objects: Objects) -> None:
    objects.get("NetworkPolicy", "to-mongodb")["spec"]["egress"][0]["ports"][0]["port"] = 27018


def a_rule_that_its_types_leave_out(objects: Objects) -> None:
    objects.get("NetworkPolicy", "scheduler")["spec"]["policyTypes"] = ["Ingress"]


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (network.everything_is_denied_first, denies_nothing),
    (network.everything_is_denied_first, denies_only_what_comes_in),
    (network.policies_select_pods_and_ports, a_policy_about_nobody),
    (network.policies_select_pods_and_ports, a_policy_for_a_port_that_is_not_there),
    (network.policies_select_pods_and_ports, a_rule_that_its_types_leave_out),
)
