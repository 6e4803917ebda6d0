"""Who may speak to whom, decided from rendered network policies as a cluster's network would.

A connection passes if both ends let it. An end that no policy of that direction selects lets everything pass; else one
rule of one of them must match.
"""

from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network

from tests.manifests.objects import Object, Objects, selects

NAMESPACE = "hascheduler"


@dataclass(frozen=True)
class End:
    """A pod of the namespace (by its component), one of another namespace, or an address outside the cluster."""

    component: str = ""
    namespace: str = NAMESPACE
    address: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def all_labels(self) -> dict[str, str]:
        if not self.component:
            return self.labels
        return {"app.kubernetes.io/name": "hascheduler", "app.kubernetes.io/component": self.component}


@dataclass(frozen=True)
class Port:
    number: int
    protocol: str = "TCP"


def passes(objects: Objects, source: End, target: End, port: Port) -> bool:
    out = _rules(objects, source, "Egress")
    into = _rules(objects, target, "Ingress")
    return (out is None or any(_names(rule.get("to", []), target) and _has(rule, port) for rule in out)) and (
        into is None or any(_names(rule.get("from", []), source) and _has(rule, port) for rule in into)
    )


def _rules(objects: Objects, end: End, direction: str) -> list[Object] | None:
    """Those for the end; None where nobody decides here."""
    if end.address or end.namespace != NAMESPACE:
        return None
    policies = [policy["spec"] for policy in objects.of("NetworkPolicy")]
    about = [
        policy
        for policy in policies
        if direction in policy["policyTypes"] and selects(policy["podSelector"], end.all_labels)
    ]
    return [rule for policy in about for rule in policy.get(direction.lower(), [])] if about else None


def _names(ends: list[Object], other: End) -> bool:
    return not ends or any(_is(end, other) for end in ends)


def _is(end: Object, other: End) -> bool:
    if "ipBlock" in end:
        if not other.address:
            return False  # a network may take a pod's address for one of a block; what relies on that is not portable
        address, block = ip_address(other.address), end["ipBlock"]
        return address in ip_network(block["cidr"]) and not any(
            address in ip_network(text) for text in block.get("except", [])
        )
    if other.address:
        return False
    namespace = {"kubernetes.io/metadata.name": other.namespace}
    in_namespace = (
        selects(end["namespaceSelector"], namespace) if "namespaceSelector" in end else other.namespace == NAMESPACE
    )
    return in_namespace and selects(end.get("podSelector", {}), other.all_labels)


def _has(rule: Object, port: Port) -> bool:
    ports = rule.get("ports", [])
    return not ports or port in [Port(each["port"], each.get("protocol", "TCP")) for each in ports]
