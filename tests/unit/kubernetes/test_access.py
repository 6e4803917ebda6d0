"""What a pod's environment and files say, and what is wrong where they are not those of a pod."""

from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.kubernetes.api import ClusterAccess, KubernetesApi, in_cluster
from hascheduler.settings import Settings, read_settings
from tests.doubles.kubernetes.service_account import ServiceAccount

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


def access(account: ServiceAccount, environment: dict[str, str] | None = None, namespace: str = "") -> ClusterAccess:
    return in_cluster(POD if environment is None else environment, str(account.folder), namespace)


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        (POD, "https://10.96.0.1:6443"),
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1"}, "https://10.96.0.1:443"),
        ({"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}, "https://[fd00::1]:443"),
        ({"KUBERNETES_SERVICE_HOST": "api.example.com"}, "https://api.example.com:443"),
    ],
)
def test_the_address_is_the_environment_s(account: ServiceAccount, environment: dict[str, str], url: str) -> None:
    assert access(account, environment).url == url


def test_the_namespace_is_the_pod_s_unless_another_is_set(account: ServiceAccount) -> None:
    assert access(account).namespace == "hascheduler"
    assert access(account, namespace="elsewhere").namespace == "elsewhere"
    (account.folder / "namespace").unlink()
    assert access(account, namespace="elsewhere").namespace == "elsewhere"


async def test_no_pod_or_half_of_one_is_refused_by_the_name_of_what_is_missing(account: ServiceAccount) -> None:
    with pytest.raises(InvalidInput, match=r"KUBERNETES_SERVICE_HOST: is not set; expected .*LEASE_STORE=mongodb"):
        access(account, {})
    for name, missing in (
        ("namespace", "HASCHEDULER_LEASE_NAMESPACE: .*namespace: No such file"),
        ("token", "HASCHEDULER_SERVICE_ACCOUNT_DIR: .*token: No such file.*automountServiceAccountToken"),
    ):
        file = account.folder / name
        kept = file.read_bytes()
        file.unlink()
        with pytest.raises(InvalidInput, match=missing):
            access(account)
        for nothing in (b"", b" \n", b"\xff"):
            file.write_bytes(nothing)
            with pytest.raises(InvalidInput, match="holds nothing that is of use"):
                access(account)
        file.write_bytes(kept)
    (account.folder / "ca.crt").write_text("no certificate")
    with pytest.raises(InvalidInput, match=r"HASCHEDULER_SERVICE_ACCOUNT_DIR: .*ca.crt: no certificate"):
        KubernetesApi(access(account))


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    return read_settings()


def test_without_settings_leases_are_in_mongodb(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(monkeypatch)
    assert (settings.lease_store, settings.lease_namespace, settings.lease_name) == ("mongodb", "", "")
    assert Path(settings.service_account_dir) == Path("/var/run/secrets/kubernetes.io/serviceaccount")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LEASE_STORE": "etcd"}, "HASCHEDULER_LEASE_STORE: .*'mongodb' or 'kubernetes'"),
        ({"LEASE_NAMESPACE": "Night"}, "HASCHEDULER_LEASE_NAMESPACE"),
        ({"LEASE_NAMESPACE": "../kube-system"}, "HASCHEDULER_LEASE_NAMESPACE"),
        ({"LEASE_NAMESPACE": "a" * 64}, "HASCHEDULER_LEASE_NAMESPACE"),
        ({"LEASE_NAME": "a/b"}, "HASCHEDULER_LEASE_NAME"),
        ({"LEASE_NAME": "-a"}, "HASCHEDULER_LEASE_NAME"),
        ({"LEASE_NAME": "a\n"}, "HASCHEDULER_LEASE_NAME"),
        ({"LEASE_NAME": "a" * 254}, "HASCHEDULER_LEASE_NAME"),
        ({"LEASE_STORE": "kubernetes", "SHARD": "a-"}, "HASCHEDULER_LEASE_NAME: .*hascheduler-a- is no name"),
    ],
)
def test_what_no_api_server_would_take_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(monkeypatch, **variables)


def test_a_shard_may_end_oddly_where_the_lease_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(monkeypatch, LEASE_STORE="kubernetes", SHARD="a-", LEASE_NAME="a.b").lease_name == "a.b"
