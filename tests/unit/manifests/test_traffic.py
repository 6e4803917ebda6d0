"""All that the network policies let through, and nothing else: whom a component reaches, and who reaches it.

An attacker who takes over a component, or who is in the cluster, reaches no more than the work needs.
"""

from itertools import product

import pytest

from tests.manifests.objects import Objects
from tests.manifests.rendering import EXTERNAL, KIND, LEASE, PRODUCTION, SHARDS, TRIAL, rendered
from tests.manifests.traffic import End, Port, passes

Reach = set[tuple[str, int | str]]

COMPONENTS = ("scheduler", "processor", "mongodb", "rabbitmq", "bootstrap")
OUTSIDE = {
    "dns": End(namespace="kube-system", labels={"k8s-app": "kube-dns"}),
    "dns of the node": End(address="169.254.20.10"),
    "a system pod": End(namespace="kube-system", labels={"k8s-app": "metrics-server"}),
    "monitoring": End(namespace="monitoring"),
    "a stranger": End(namespace="default"),
    "metadata": End(address="169.254.169.254"),
    "inside": End(address="10.96.0.1"),
    "inside of IPv6": End(address="fd00::1"),
    "a private network": End(address="192.168.1.1"),
    "a node": End(address="172.18.0.2"),
    "the internet": End(address="93.184.215.14"),
    "the internet of IPv6": End(address="2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
}
ENDS = {**{component: End(component) for component in COMPONENTS}, **OUTSIDE}
NAMES: Reach = {("dns", 53), ("dns of the node", 53)}
WEBHOOKS: Reach = {(end, port) for end in ("the internet", "the internet of IPv6") for port in (80, 443)}
TRACES: Reach = {("monitoring", 4318)}
NEEDED: dict[str, Reach] = {
    # A standby watches the leader's process, else a takeover waits for the lease to run out; a scheduler watches the
    # processors', else their jobs wait for the heartbeat timeout.
    "scheduler": {("scheduler", 7070), ("processor", 7070), ("mongodb", 27017), ("rabbitmq", "amqp"), *NAMES},
    "processor": {("mongodb", 27017), ("rabbitmq", "amqp"), *NAMES},
    "mongodb": {("mongodb", 27017), *NAMES},
    "rabbitmq": set(),
    "bootstrap": {("mongodb", 27017), *NAMES},
}
METRICS: Reach = {("scheduler", 9090), ("processor", 9090), ("rabbitmq", 15692)}


def _reached(objects: Objects, source: End, ends: dict[str, End] = ENDS) -> Reach:
    """Return every end and port that any policy lets the source through to."""
    policies = [policy["spec"] for policy in objects.of("NetworkPolicy")]
    rules = [rule for spec in policies for side in ("ingress", "egress") for rule in spec.get(side, [])]
    ports = {22, 80, 443, 3306, *(port["port"] for rule in rules for port in rule.get("ports", []))}
    assert all(rule.get("ports") for rule in rules), "a rule for every port"
    return {
        (name, "amqp" if name == "rabbitmq" and port in (5671, 5672) else port)
        for (name, end), port in product(ends.items(), ports)
        if passes(objects, source, end, Port(port))
    }


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize("folder", [PRODUCTION, TRIAL, KIND])
def test_a_component_reaches_what_its_work_takes_and_no_more(folder: str, component: str) -> None:
    # To try webhooks out they must get out; production has that said where it is wanted.
    more = WEBHOOKS if component == "processor" and folder != PRODUCTION else set()
    assert _reached(rendered(folder), End(component)) == NEEDED[component] | more


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("folder", [PRODUCTION, KIND])
def test_from_outside_the_api_is_reached_and_metrics_by_monitoring_alone(folder: str, outside: str) -> None:
    components = {component: End(component) for component in COMPONENTS}
    more = METRICS if outside == "monitoring" else set()
    assert _reached(rendered(folder), OUTSIDE[outside], components) == {("scheduler", 8080)} | more


def test_names_are_asked_for_over_udp_too() -> None:
    assert passes(rendered(KIND), End("scheduler"), OUTSIDE["dns"], Port(53, "UDP"))


def test_without_the_policy_of_schedulers_a_standby_cannot_watch_the_leader() -> None:
    objects = rendered(KIND).copy()
    objects.all.remove(objects.get("NetworkPolicy", "scheduler"))
    assert not passes(objects, End("scheduler"), End("scheduler"), Port(7070))


def test_what_a_variant_adds_is_for_those_that_need_it() -> None:
    external = {component: _reached(rendered(EXTERNAL), End(component)) for component in COMPONENTS}
    assert external["scheduler"] >= TRACES | {("inside", 27017)}
    assert external["processor"] >= TRACES | {("the internet", 5671)}
    assert external["bootstrap"] >= {("inside", 27017)}
    assert not TRACES & external["bootstrap"]
    assert not WEBHOOKS & (external["scheduler"] | external["processor"])
    keeper = _reached(rendered(LEASE), End("scheduler")) - NEEDED["scheduler"]
    assert keeper >= set(product(("inside", "inside of IPv6", "a node", "the internet"), (443, 6443)))
    assert {port for _, port in keeper} == {443, 6443}
    assert _reached(rendered(LEASE), End("processor")) == NEEDED["processor"]
    assert _reached(rendered(LEASE), End("bootstrap")) == NEEDED["bootstrap"]
    assert _reached(rendered(SHARDS), End("scheduler")) == NEEDED["scheduler"] | {("scheduler", 8080)}
    assert _reached(rendered(SHARDS), End("bootstrap")) == NEEDED["bootstrap"]
