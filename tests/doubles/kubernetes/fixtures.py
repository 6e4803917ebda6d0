"""An API server, a service account that it knows, and the store in between."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hascheduler.kubernetes.api import KubernetesApi
from hascheduler.kubernetes.leases import KubernetesLeaseStore
from tests.doubles.kubernetes.api_server import ApiServerDouble, serving
from tests.doubles.kubernetes.service_account import ServiceAccount
from tests.unit.tls.certificates import Authority, Issued

__all__ = ["account", "api", "authority", "certificate", "cluster", "leases"]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("cluster-authority"))


@pytest.fixture(scope="session")
def certificate(authority: Authority) -> Issued:
    return authority.issue("api-server")


@pytest.fixture
def account(tmp_path: Path, authority: Authority) -> ServiceAccount:
    return ServiceAccount(tmp_path / "service-account", authority)


@pytest.fixture
async def cluster(certificate: Issued) -> AsyncIterator[ApiServerDouble]:
    async with serving(certificate, "the-first-token") as double:
        yield double


@pytest.fixture
async def api(cluster: ApiServerDouble, account: ServiceAccount) -> AsyncIterator[KubernetesApi]:
    api = KubernetesApi(account.access(cluster))
    yield api
    await api.close()


@pytest.fixture
def leases(api: KubernetesApi) -> KubernetesLeaseStore:
    return KubernetesLeaseStore(api)
