"""Network policies name what is there; what they let through is tested in `tests.unit.manifests.test_traffic`."""

from collections.abc import Iterator
from ipaddress import ip_network

from tests.manifests.objects import Object, Objects, Pod


def everything_is_denied_first(objects: Objects) -> Iterator[str]:
    for policy in objects.of("NetworkPolicy"):
        spec = policy["spec"]
        if spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}:
            return
    yield "no policy denies by default"


def policies_select_pods_and_ports(objects: Objects) -> Iterator[str]:
    for policy in objects.of("NetworkPolicy"):
        name, spec = f"NetworkPolicy/{policy['metadata']['name']}", policy["spec"]
        pods = objects.pods_with(spec["podSelector"])
        if not pods:
            yield f"{name} is about nobody"
        for direction, ends in (("Ingress", "from"), ("Egress", "to")):
            rules = spec.get(direction.lower(), [])
            if rules and direction not in spec["policyTypes"]:
                yield f"{name}: {direction} is not among its types"
            for rule in rules:
                yield from _ends(name, objects, pods, rule, ends)


def _ends(name: str, objects: Objects, pods: list[Pod], rule: Object, ends: str) -> Iterator[str]:
    receivers = pods if ends == "from" else []
    for end in rule.get(ends, []):
        if "podSelector" in end and "namespaceSelector" not in end:
            found = objects.pods_with(end["podSelector"])
            if not found:
                yield f"{name}: {end['podSelector']} is nobody"
            receivers = receivers if ends == "from" else [*receivers, *found]
        if "ipBlock" in end:
            block = ip_network(end["ipBlock"]["cidr"])
            for text in end["ipBlock"].get("except", []):
                if not ip_network(text).subnet_of(block):  # type: ignore[arg-type]  # of one version, else an error
                    yield f"{name}: {text} is not in {block}"
    for port in rule.get("ports", []):
        for pod in receivers:
            if port["port"] not in pod.ports.values():
                yield f"{name}: {pod.name} has no port {port['port']}"


RULES = (everything_is_denied_first, policies_select_pods_and_ports)
