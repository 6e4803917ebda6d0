"""What a pod's environment, files and rights are, and what is wrong where they are not those of a pod."""

import copy

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.kubernetes.api import ClusterAccess, KubernetesApi, in_cluster
from hascheduler.kubernetes.leases import KubernetesLeaseStore
from hascheduler.settings import Settings, read_settings
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.service_account import ServiceAccount
from tests.factories import make_lease
from tests.manifests.objects import Object
from tests.manifests.rendering import LEASE, rendered
from tests.manifests.rules.commands import settings_of

# Environment and files

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
            with pytest.raises(InvalidInput, match="is empty, or not ASCII"):
                access(account)
        file.write_bytes(kept)
    (account.folder / "ca.crt").write_text("no certificate")
    with pytest.raises(InvalidInput, match=r"HASCHEDULER_SERVICE_ACCOUNT_DIR: .*ca.crt: holds no readable certificate"):
        KubernetesApi(access(account))


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(f"HASCHEDULER_{name}", value)
    return read_settings()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LEASE_STORE": "etcd"}, "HASCHEDULER_LEASE_STORE: .*'mongodb' or 'kubernetes'"),
        ({"LEASE_NAMESPACE": "../kube-system"}, "HASCHEDULER_LEASE_NAMESPACE"),
        ({"LEASE_NAME": "a/b"}, "HASCHEDULER_LEASE_NAME"),
        ({"LEASE_STORE": "kubernetes", "SHARD": "a-"}, "HASCHEDULER_LEASE_NAME: .*hascheduler-a- is not a valid name"),
    ],
)
def test_what_no_api_server_would_take_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(monkeypatch, **variables)


# The rights that the manifests give are those that the store needs: no fewer, and no more


@pytest.fixture
def rules(cluster: ApiServerDouble) -> list[Object]:
    rules: list[Object] = copy.deepcopy(rendered(LEASE).get("Role", "scheduler")["rules"])
    cluster.rules = rules
    return rules


@pytest.fixture
def deployed(api: KubernetesApi) -> KubernetesLeaseStore:
    """The store that the manifests' settings make."""
    objects = rendered(LEASE)
    [container] = [each for each in objects.containers() if each.name == "Deployment/scheduler scheduler"]
    settings = settings_of(objects, container)
    assert (settings.lease_store, settings.shard) == ("kubernetes", "default")
    return KubernetesLeaseStore(api, settings.lease_name)


async def _whole_life(leases: KubernetesLeaseStore) -> None:
    assert await leases.get("default") is None
    assert await leases.create(make_lease())
    assert await leases.update(make_lease(), make_lease(renewals=1))


async def test_they_suffice(deployed: KubernetesLeaseStore, rules: list[Object]) -> None:
    await _whole_life(deployed)


@pytest.mark.parametrize("verb", ["get", "create", "update"])
async def test_none_of_them_is_too_many(deployed: KubernetesLeaseStore, rules: list[Object], verb: str) -> None:
    assert sorted(verb for rule in rules for verb in rule["verbs"]) == ["create", "get", "update"]
    for rule in rules:
        rule["verbs"] = [each for each in rule["verbs"] if each != verb]
    right = f"{verb} leases.coordination.k8s.io{'' if verb == 'create' else ' hascheduler-default'} in namespace"
    with pytest.raises(StoreUnavailable, match=f"needs the right to {right}"):
        await _whole_life(deployed)


async def test_no_other_lease_can_be_touched(api: KubernetesApi, rules: list[Object]) -> None:
    leases = KubernetesLeaseStore(api, "somebody-else-s")
    assert await leases.create(make_lease())
    with pytest.raises(StoreUnavailable, match="needs the right to update"):
        await leases.update(make_lease(), make_lease(renewals=1))
    with pytest.raises(StoreUnavailable, match="needs the right to get"):
        await leases.get("default")
