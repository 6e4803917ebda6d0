"""The overlays render what API servers of these versions take."""

import re
from itertools import product

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate.utils import all_versions

from hascheduler import __version__
from hascheduler.api.middleware.overload import WAIT_S_MAX
from hascheduler.api.routing.route_rules import LARGE_BODY_BYTES_MAX
from tests.manifests.objects import Object
from tests.manifests.rendering import GATEWAY, INGRESS, KIND, PRODUCTION, ROOT, VARIANTS, rendered
from tests.tiers import spread

OLDEST = "1.30"
"""Before it a pod could not sleep before its end."""
NEWEST = sorted({tuple(map(int, found.split(".")[:2])) for found in all_versions()})[-3:]
VERSIONS = [OLDEST, *(f"{major}.{minor}" for major, minor in NEWEST)]
FOREIGN_OF_GATEWAYS = ("Gateway", "HTTPRoute", "BackendTLSPolicy")
FOREIGN = {"ScaledObject", "Issuer", "Certificate", *FOREIGN_OF_GATEWAYS}
"""Kinds of others, whose schemas are not among Kubernetes' own."""


@pytest.mark.parametrize(("folder", "version"), spread(product(VARIANTS, VERSIONS), check=3))
def test_every_object_is_valid(folder: str, version: str) -> None:
    for found in rendered(folder).all:
        if found["kind"] not in FOREIGN:
            assert kubernetes_validate.validate(found, version, strict=True) == version, found["metadata"]["name"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_misspelt_field_is_not_valid(version: str) -> None:
    deployment = rendered(KIND).copy().get("Deployment", "scheduler")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="livenessprobe"):
        kubernetes_validate.validate(deployment, version, strict=True)


def test_an_autoscaled_deployment_is_told_to_start_with_its_minimum() -> None:
    """No manifest can say it: each apply would set the number back."""
    least = rendered(PRODUCTION).get("HorizontalPodAutoscaler", "processor")["spec"]["minReplicas"]
    told = f"scale deployment/processor --current-replicas=1 --replicas={least} "
    assert told in (ROOT / "docs/operations/kubernetes.md").read_text()


def test_an_ingress_lets_the_longest_and_the_largest_requests_through() -> None:
    prefix = "nginx.ingress.kubernetes.io/proxy-"
    annotations = rendered(INGRESS).get("Ingress", "hascheduler")["metadata"]["annotations"]
    assert int(annotations[f"{prefix}body-size"].removesuffix("m")) << 20 == LARGE_BODY_BYTES_MAX
    assert int(annotations[f"{prefix}read-timeout"]) > WAIT_S_MAX + 30
    assert (annotations[f"{prefix}buffering"], annotations[f"{prefix}http-version"]) == ("off", "1.1")
    assert annotations[f"{prefix}ssl-verify"] == "on"


def test_a_gateway_never_cuts_a_stream_off_and_knows_whom_it_speaks_to() -> None:
    """No schema of these is among Kubernetes' own."""
    gateway, route, policy = (rendered(GATEWAY).get(kind, "hascheduler") for kind in FOREIGN_OF_GATEWAYS)
    assert {found["apiVersion"] for found in (gateway, route, policy)} == {"gateway.networking.k8s.io/v1"}
    assert route["spec"].keys() == {"parentRefs", "hostnames", "rules"}
    [rule] = route["spec"]["rules"]
    assert rule.keys() == {"backendRefs", "timeouts"}
    assert rule["timeouts"] == {"request": "0s", "backendRequest": "0s"}
    assert [found["name"] for found in route["spec"]["parentRefs"]] == [gateway["metadata"]["name"]]
    assert [found["hostname"] for found in gateway["spec"]["listeners"]] == route["spec"]["hostnames"]
    assert policy["spec"].keys() == {"targetRefs", "validation"}
    assert policy["spec"]["validation"]["hostname"] in [found["name"] for found in policy["spec"]["targetRefs"]]


def test_images_are_set_in_one_place() -> None:
    component = yaml.safe_load((ROOT / "k8s/components/images/kustomization.yaml").read_text())
    set_there = {f"{image['name']}:{image['newTag']}" for image in component["images"]}
    for folder in VARIANTS:
        used = {container.spec["image"] for container in rendered(folder).containers()}
        assert used <= set_there, folder
    elsewhere = [path for path in (ROOT / "k8s").rglob("kustomization.yaml") if "\nimages:" in path.read_text()]
    assert elsewhere == [ROOT / "k8s/components/images/kustomization.yaml"]
    # The manifests are of one release with the program.
    assert {f"hascheduler:{__version__}", f"hascheduler-processor:{__version__}"} <= set_there


def test_members_are_named_alike_everywhere() -> None:
    """The list of bootstrap, the URI that clients have, and what the StatefulSet gives names to."""
    kind, production = rendered(KIND), rendered(PRODUCTION)
    uri = (ROOT / KIND / "secrets/hascheduler-scheduler/mongodb-uri").read_text()
    assert _members(kind.get("Deployment", "bootstrap")) == re.findall(r"[@,]([^,/@]+:[0-9]+)", uri)
    for objects in (kind, production):
        members = objects.get("StatefulSet", "mongodb")
        assert _members(objects.get("Deployment", "bootstrap")) == [
            f"mongodb-{number}.{members['spec']['serviceName']}:27017" for number in range(members["spec"]["replicas"])
        ]


def _members(bootstrap: Object) -> list[str]:
    [container, _] = bootstrap["spec"]["template"]["spec"]["initContainers"]
    [members] = [variable["value"] for variable in container["env"] if variable["name"] == "MEMBERS"]
    return str(members).split(",")


@pytest.mark.parametrize("folder", [KIND, PRODUCTION])
def test_the_cache_leaves_room_in_the_memory(folder: str) -> None:
    """Connections, sorts and the members' own needs take some hundred MiB besides; the broker stops in time as well."""
    objects = rendered(folder)
    cache = yaml.safe_load(objects.get("ConfigMap", "mongodb-config")["data"]["mongod.conf"])["storage"]["wiredTiger"]
    assert cache["engineConfig"]["cacheSizeGB"] * 1024 <= _memory_mi(objects.get("StatefulSet", "mongodb")) - 512
    conf = objects.get("ConfigMap", "rabbitmq-config")["data"]["rabbitmq.conf"]
    [watermark] = re.findall(r"^vm_memory_high_watermark\.absolute = ([0-9]+)MB$", conf, re.MULTILINE)
    assert int(watermark) <= 0.65 * _memory_mi(objects.get("StatefulSet", "rabbitmq"))


def _memory_mi(owner: Object) -> int:
    limit: str = owner["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"]
    return int(limit[:-2]) * {"Mi": 1, "Gi": 1024}[limit[-2:]]


def test_the_brokers_configuration_with_tls_differs_in_that_alone() -> None:
    base, secured = ((ROOT / folder / "rabbitmq.conf").read_text().splitlines()
                     for folder in ("k8s/base/rabbitmq", "k8s/components/tls"))  # fmt: skip
    assert [line for line in base if line not in secured] == ["listeners.tcp.default = 5672"]
    added = [line for line in secured if line not in base and not line.startswith("#")]
    assert all(line.startswith(("listeners.", "ssl_options.")) for line in added), added
