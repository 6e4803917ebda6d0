"""The rights that the manifests give are those that the store needs: no fewer, and no more."""

import copy

import pytest

from hascheduler.errors import StoreUnavailable
from hascheduler.kubernetes.api import KubernetesApi
from hascheduler.kubernetes.leases import KubernetesLeaseStore
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.factories import make_lease
from tests.manifests.objects import Object
from tests.manifests.rendering import LEASE, rendered
from tests.manifests.rules.commands import settings_of


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
    with pytest.raises(StoreUnavailable, match=f"needs the right to {verb}"):
        await _whole_life(deployed)


async def test_no_other_lease_can_be_touched(api: KubernetesApi, rules: list[Object]) -> None:
    leases = KubernetesLeaseStore(api, "somebody-else-s")
    assert await leases.create(make_lease())
    with pytest.raises(StoreUnavailable, match="needs the right to update"):
        await leases.update(make_lease(), make_lease(renewals=1))
    with pytest.raises(StoreUnavailable, match="needs the right to get"):
        await leases.get("default")
