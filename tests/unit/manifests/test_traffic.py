"""What the network policies let through, and what they do not."""

import pytest

from tests.manifests.rendering import EXTERNAL, KIND, LEASE, PRODUCTION, rendered
from tests.manifests.traffic import End, Port, passes

SCHEDULER, PROCESSOR, BOOTSTRAP = End("scheduler"), End("processor"), End("bootstrap")
MONGODB, RABBITMQ = End("mongodb"), End("rabbitmq")
DNS, OF_SYSTEM = End(namespace="kube-system", labels={"k8s-app": "kube-dns"}), End(namespace="kube-system")
MONITORING, STRANGER = End(namespace="monitoring"), End(namespace="default")
INTERNET, INSIDE, METADATA = End(address="93.184.215.14"), End(address="10.96.0.1"), End(address="169.254.169.254")
INTERNET_6, INSIDE_6 = End(address="2606:2800:21f:cb07:6820:80da:af6b:8b2c"), End(address="fd00::1")

AMQP = -1
"""Its port where it is reached: another number with TLS."""
NEEDED = (
    # A standby watches the leader's process: else a takeover waits for the lease to run out.
    (SCHEDULER, SCHEDULER, 7070),
    # A scheduler watches the processors': else their jobs wait for the heartbeat timeout.
    (SCHEDULER, PROCESSOR, 7070),
    (SCHEDULER, MONGODB, 27017),
    (PROCESSOR, MONGODB, 27017),
    (BOOTSTRAP, MONGODB, 27017),
    (MONGODB, MONGODB, 27017),
    (SCHEDULER, RABBITMQ, AMQP),
    (PROCESSOR, RABBITMQ, AMQP),
    (INTERNET, SCHEDULER, 8080),
    (INSIDE, SCHEDULER, 8080),
    (STRANGER, SCHEDULER, 8080),
    (MONITORING, SCHEDULER, 9090),
    (MONITORING, PROCESSOR, 9090),
    (MONITORING, RABBITMQ, 15692),
    (SCHEDULER, DNS, 53),
    (PROCESSOR, DNS, 53),
    (MONGODB, DNS, 53),
    (BOOTSTRAP, DNS, 53),
    (BOOTSTRAP, End(address="169.254.20.10"), 53),
)
DENIED = (
    (STRANGER, SCHEDULER, 7070),
    (STRANGER, SCHEDULER, 9090),
    (STRANGER, MONGODB, 27017),
    (STRANGER, RABBITMQ, AMQP),
    (PROCESSOR, SCHEDULER, 7070),
    (PROCESSOR, PROCESSOR, 9090),
    (PROCESSOR, PROCESSOR, 7070),
    (STRANGER, PROCESSOR, 7070),
    (INTERNET, PROCESSOR, 7070),
    (SCHEDULER, PROCESSOR, 9090),
    (RABBITMQ, MONGODB, 27017),
    (BOOTSTRAP, RABBITMQ, AMQP),
    (MONGODB, INTERNET, 443),
    (RABBITMQ, INTERNET, 443),
    (SCHEDULER, INTERNET, 443),
    (BOOTSTRAP, INTERNET, 443),
    (PROCESSOR, INSIDE, 443),
    (PROCESSOR, METADATA, 80),
    (PROCESSOR, End(address="192.168.1.1"), 80),
    (PROCESSOR, End(address="172.20.0.1"), 443),
    (PROCESSOR, INSIDE_6, 443),
    (PROCESSOR, INTERNET, 22),
    (SCHEDULER, DNS, 443),
    (SCHEDULER, OF_SYSTEM, 53),
    (SCHEDULER, MONITORING, 4318),
    (RABBITMQ, DNS, 53),
    (INTERNET, MONGODB, 27017),
)


def _port(folder: str, number: int) -> Port:
    return Port({KIND: 5672, PRODUCTION: 5671}[folder] if number == AMQP else number)


def _names(value: object) -> str:
    return (value.component or value.address or value.namespace) if isinstance(value, End) else str(value)


@pytest.mark.parametrize(("source", "target", "port"), NEEDED, ids=_names)
@pytest.mark.parametrize("folder", [KIND, PRODUCTION])
def test_what_is_needed_passes(folder: str, source: End, target: End, port: int) -> None:
    assert passes(rendered(folder), source, target, _port(folder, port))


@pytest.mark.parametrize(("source", "target", "port"), DENIED, ids=_names)
@pytest.mark.parametrize("folder", [KIND, PRODUCTION])
def test_what_is_not_needed_does_not(folder: str, source: End, target: End, port: int) -> None:
    assert not passes(rendered(folder), source, target, _port(folder, port))


def test_names_are_asked_for_over_udp_too() -> None:
    assert passes(rendered(KIND), SCHEDULER, DNS, Port(53, "UDP"))


def test_without_the_policy_of_schedulers_a_standby_cannot_watch_the_leader() -> None:
    objects = rendered(KIND).copy()
    objects.all.remove(objects.get("NetworkPolicy", "scheduler"))
    assert not passes(objects, SCHEDULER, SCHEDULER, Port(7070))


def test_webhooks_get_out_where_that_is_said_and_nowhere_inside() -> None:
    for end, port in ((INTERNET, 443), (INTERNET, 80), (INTERNET_6, 443)):
        assert passes(rendered(KIND), PROCESSOR, end, Port(port))
        assert not passes(rendered(PRODUCTION), PROCESSOR, end, Port(port))


def test_servers_that_are_there_already_are_reached() -> None:
    objects = rendered(EXTERNAL)
    assert passes(objects, SCHEDULER, INSIDE, Port(27017))
    assert passes(objects, BOOTSTRAP, INSIDE, Port(27017))
    assert passes(objects, PROCESSOR, INTERNET, Port(5671))
    assert passes(objects, PROCESSOR, MONITORING, Port(4318))
    assert not passes(objects, PROCESSOR, INTERNET, Port(443))
    assert not passes(objects, SCHEDULER, INTERNET, Port(443))


def test_who_keeps_the_lease_reaches_the_api_server_and_nobody_else_does() -> None:
    objects = rendered(LEASE)
    for address in (INSIDE, End(address="172.18.0.2"), INTERNET, INSIDE_6):
        assert passes(objects, SCHEDULER, address, Port(443))
        assert passes(objects, SCHEDULER, address, Port(6443))
        assert not passes(objects, BOOTSTRAP, address, Port(443))
    assert not passes(objects, PROCESSOR, INSIDE, Port(443))
    assert not passes(objects, PROCESSOR, INTERNET, Port(6443))
    assert not passes(objects, SCHEDULER, INTERNET, Port(80))
