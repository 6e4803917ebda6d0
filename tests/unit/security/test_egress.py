"""The egress of each component, all of it: an attacker who takes one over reaches no more than its work needs."""

from itertools import product

import pytest

from tests.manifests.objects import Objects
from tests.manifests.rendering import EXTERNAL, KIND, LEASE, PRODUCTION, SHARDS, TRIAL, rendered
from tests.manifests.traffic import End, Port, passes

Reach = set[tuple[str, int | str]]

COMPONENTS = ("scheduler", "processor", "mongodb", "rabbitmq", "bootstrap")
ENDS = {
    **{component: End(component) for component in COMPONENTS},
    "dns": End(namespace="kube-system", labels={"k8s-app": "kube-dns"}),
    "dns of the node": End(address="169.254.20.10"),
    "a system pod": End(namespace="kube-system", labels={"k8s-app": "metrics-server"}),
    "monitoring": End(namespace="monitoring"),
    "a stranger": End(namespace="default"),
    "metadata": End(address="169.254.169.254"),
    "inside": End(address="10.96.0.1"),
    "the internet": End(address="93.184.215.14"),
    "the internet of IPv6": End(address="2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
}
NAMES: Reach = {("dns", 53), ("dns of the node", 53)}
WEBHOOKS: Reach = {(end, port) for end in ("the internet", "the internet of IPv6") for port in (80, 443)}
TRACES: Reach = {("monitoring", 4318)}
NEEDED: dict[str, Reach] = {
    "scheduler": {("scheduler", 7070), ("processor", 7070), ("mongodb", 27017), ("rabbitmq", "amqp"), *NAMES},
    "processor": {("mongodb", 27017), ("rabbitmq", "amqp"), *NAMES},
    "mongodb": {("mongodb", 27017), *NAMES},
    "rabbitmq": set(),
    "bootstrap": {("mongodb", 27017), *NAMES},
}


def _reached(objects: Objects, component: str) -> Reach:
    """Every end and port that any policy lets the component through to."""
    policies = [policy["spec"] for policy in objects.of("NetworkPolicy")]
    rules = [rule for spec in policies for side in ("ingress", "egress") for rule in spec.get(side, [])]
    ports = {22, 80, 443, 3306, *(port["port"] for rule in rules for port in rule.get("ports", []))}
    assert all(rule.get("ports") for rule in rules), "a rule for every port"
    return {
        (name, "amqp" if name == "rabbitmq" and port in (5671, 5672) else port)
        for (name, end), port in product(ENDS.items(), ports)
        if passes(objects, End(component), end, Port(port))
    }


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("folder", [PRODUCTION, TRIAL, KIND])
def test_a_component_reaches_what_its_work_takes_and_no_more(folder: str, component: str) -> None:
    # To try webhooks out they must get out; production has that said where it is wanted.
    more = WEBHOOKS if component == "processor" and folder != PRODUCTION else set()
    assert _reached(rendered(folder), component) == NEEDED[component] | more


def test_what_a_component_adds_is_for_those_that_need_it() -> None:
    objects = rendered(EXTERNAL)
    assert _reached(objects, "scheduler") >= TRACES
    assert _reached(objects, "processor") >= TRACES
    assert not TRACES & _reached(objects, "bootstrap")
    keeper = _reached(rendered(LEASE), "scheduler") - NEEDED["scheduler"]
    assert {port for _, port in keeper} == {443, 6443}
    assert _reached(rendered(LEASE), "processor") == NEEDED["processor"]
    of_shards = rendered(SHARDS)
    assert _reached(of_shards, "scheduler") == NEEDED["scheduler"] | {("scheduler", 8080)}
    assert _reached(of_shards, "bootstrap") == NEEDED["bootstrap"]
