"""Everything is denied first; what policies then let through is tested in `tests.unit.manifests.test_traffic`."""

from collections.abc import Iterator

from tests.manifests.objects import Objects


def everything_is_denied_first(objects: Objects) -> Iterator[str]:
    denied = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    if denied not in [policy["spec"] for policy in objects.of("NetworkPolicy")]:
        yield "no policy denies by default"
