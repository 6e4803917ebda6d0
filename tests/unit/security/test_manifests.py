"""The manifests: no plaintext between pods, images pinned by one file, no JavaScript in the database."""

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.manifests.making import make_secrets
from tests.manifests.objects import Container, Objects
from tests.manifests.rendering import LEASE, PRODUCTION, ROOT, rendered

# An eavesdropper between two pods of production reads no password, payload or token

AMQP, AMQPS = 5672, 5671
CA = "/run/secrets/tls/ca.crt"
SECURED = [PRODUCTION, LEASE]


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_secrets(tmp_path_factory.mktemp("made") / "secrets")


def _ours(objects: Objects, name: str = "") -> list[Container]:
    return [one for one in objects.containers() if one.is_ours and name in one.name]


@pytest.mark.parametrize("folder", SECURED)
def test_servers_take_nothing_but_tls(folder: str) -> None:
    objects = rendered(folder)
    [mongod] = [one for one in objects.containers() if one.name == "StatefulSet/mongodb mongodb"]
    words = mongod.spec["command"]
    assert words[words.index("--tlsMode") + 1] == "requireTLS"
    broker = objects.get("ConfigMap", "rabbitmq-config")["data"]["rabbitmq.conf"]
    assert re.findall(r"^listeners\..*", broker, re.MULTILINE) == [
        "listeners.tcp = none",
        f"listeners.ssl.default = {AMQPS}",
    ]
    [scheduler] = _ours(objects, "Deployment/scheduler")
    settings = objects.settings(scheduler)
    assert settings["HASCHEDULER_HTTP_TLS_CERT_FILE"]
    # The commands inside the pod: they are shown the token to.
    assert settings["HASCHEDULER_URL"] == "https://localhost:8080"
    assert settings["HASCHEDULER_CA_FILE"] == CA


@pytest.mark.parametrize("folder", SECURED)
def test_no_port_policy_or_probe_is_of_the_plain_protocols(folder: str) -> None:
    objects = rendered(folder)
    ports = [port for pod in objects.pods() for port in pod.ports.values()]
    ports += [port["port"] for service in objects.of("Service") for port in service["spec"]["ports"]]
    policies = [policy["spec"] for policy in objects.of("NetworkPolicy")]
    rules = [rule for spec in policies for side in ("ingress", "egress") for rule in spec.get(side, [])]
    ports += [port["port"] for rule in rules for port in rule["ports"]]
    assert AMQP not in ports
    assert ports.count(AMQPS) == 4
    for found in objects.all:
        assert not re.search(r"\b(http|amqp|mongodb)://", yaml.safe_dump(found)), found["metadata"]["name"]
    for container in objects.containers():
        probes = [probe for name, probe in container.spec.items() if name.endswith("Probe")]
        for probe in probes:
            # HTTP is asked of the health port alone, which shows nothing of anybody's.
            assert probe.get("httpGet", {}).get("port", "health") == "health"
            if "exec" in probe:
                assert probe["exec"]["command"][-1] == "tls"


@pytest.mark.parametrize("folder", SECURED)
def test_a_key_is_in_the_pods_of_its_server_and_nowhere_else(folder: str) -> None:
    objects = rendered(folder)
    mounts = {
        (pod.name, volume["secret"]["secretName"]): {item["key"] for item in volume["secret"].get("items", ())}
        for pod in objects.pods()
        for volume in pod.volumes.values()
        if volume.get("secret", {}).get("secretName", "").endswith("-tls")
    }
    assert mounts == {
        ("Deployment/scheduler", "hascheduler-tls"): set(),  # all of it
        ("Deployment/processor", "hascheduler-tls"): {"ca.crt"},
        ("Deployment/bootstrap", "hascheduler-tls"): {"ca.crt"},
        ("StatefulSet/mongodb", "hascheduler-mongodb-tls"): {"tls-combined.pem", "ca.crt"},
        ("StatefulSet/rabbitmq", "hascheduler-rabbitmq-tls"): set(),
    }


def _is_for(certificate: Path, host: str) -> bool:
    option = "-checkip" if host[0].isdigit() else "-checkhost"
    command = ["openssl", "x509", "-in", str(certificate), "-noout", option, host]
    return "does match" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_each_certificate_is_for_the_names_that_its_server_is_asked_by(secrets: Path) -> None:
    objects = rendered(PRODUCTION)
    uri = (secrets / "hascheduler-scheduler/mongodb-uri").read_text()
    members = [host.partition(":")[0] for host in urlsplit(uri).netloc.rpartition("@")[2].split(",")]
    assert len(members) == objects.get("StatefulSet", "mongodb")["spec"]["replicas"]
    broker = str(urlsplit((secrets / "hascheduler-scheduler/amqp-url").read_text()).hostname)
    asked = {
        "hascheduler-mongodb-tls/tls-combined.pem": [
            *members,
            "mongodb-1.mongodb.hascheduler.svc.cluster.local",  # as a set of 0.2.0 calls it
            "localhost",
        ],
        "hascheduler-rabbitmq-tls/tls.crt": [broker, "rabbitmq.hascheduler.svc"],
        # Through the Service, from within the pod, and through a forwarded port.
        "hascheduler-tls/tls.crt": ["hascheduler.hascheduler.svc", "localhost", "127.0.0.1"],
    }
    for file, hosts in asked.items():
        for host in hosts:
            assert _is_for(secrets / file, host), f"{file}: {host}"
        assert not _is_for(secrets / file, "elsewhere.example.com")


def test_cert_manager_makes_the_same_secrets_for_the_same_names(secrets: Path) -> None:
    component = ROOT / "k8s/components/cert-manager"
    made = list(yaml.safe_load_all((component / "certificates.yaml").read_text()))
    certificates = {one["spec"]["secretName"]: one["spec"] for one in made}
    assert set(certificates) == {folder.name for folder in secrets.iterdir() if folder.name.endswith("-tls")}
    for secret, spec in certificates.items():
        certificate = next(
            file for file in (secrets / secret).iterdir() if file.name in ("tls.crt", "tls-combined.pem")
        )
        for host in [*spec["dnsNames"], *spec["ipAddresses"]]:
            assert _is_for(certificate, host.replace("*", "mongodb-0")), f"{secret}: {host}"
        assert spec["issuerRef"] == {"name": "hascheduler", "kind": "Issuer"}
    combined = certificates["hascheduler-mongodb-tls"]["additionalOutputFormats"]
    assert combined == [{"type": "CombinedPEM"}]


def test_no_mongod_of_ours_runs_javascript() -> None:
    files = list(ROOT.glob("k8s/**/mongod.conf"))
    assert files
    for file in files:
        assert yaml.safe_load(file.read_text())["security"]["javascriptEnabled"] is False, file
