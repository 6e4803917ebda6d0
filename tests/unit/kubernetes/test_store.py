"""What an API server's versions and uids bring with them, beyond what every `LeaseStore` must do."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from hascheduler.errors import StoreUnavailable
from hascheduler.kubernetes import api as api_module
from hascheduler.kubernetes.api import KubernetesApi
from hascheduler.kubernetes.leases import KubernetesLeaseStore
from tests.contract.checks import of_racing_updates_one_wins
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.service_account import NAMESPACE, ServiceAccount
from tests.factories import make_lease

NAME = "hascheduler-default"
PATH = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"


@pytest.fixture
def other(api: KubernetesApi) -> KubernetesLeaseStore:
    """Another process's store."""
    return KubernetesLeaseStore(api)


async def test_a_renewal_is_one_exchange(leases: KubernetesLeaseStore, cluster: ApiServerDouble) -> None:
    await leases.create(make_lease())
    for renewals in range(3):
        assert await leases.update(make_lease(renewals=renewals), make_lease(renewals=renewals + 1)) is True
    assert cluster.asked == ["POST", *[f"PUT {NAME}"] * 3]


async def test_a_store_that_has_seen_nothing_reads_before_it_writes(
    leases: KubernetesLeaseStore, other: KubernetesLeaseStore, cluster: ApiServerDouble
) -> None:
    await leases.create(make_lease())
    assert await other.update(make_lease(), make_lease(renewals=1)) is True
    assert cluster.asked == ["POST", f"GET {NAME}", f"PUT {NAME}"]


async def test_of_fifty_processes_one_wins(api: KubernetesApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "EXCHANGE_LIMIT_S", 60)  # fifty handshakes at once, in one process

    class EachItsOwn(KubernetesLeaseStore):
        async def update(self, *records: Any) -> bool:
            return await KubernetesLeaseStore(api).update(*records)

    await of_racing_updates_one_wins(EachItsOwn(api))


async def test_an_edit_that_leaves_the_record_costs_a_renewal_nothing(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble
) -> None:
    await leases.create(make_lease())
    cluster.leases.edit(NAMESPACE, NAME, lambda lease: lease["metadata"]["labels"].update(team="night"))
    assert await leases.update(make_lease(), make_lease(renewals=1)) is True
    assert await leases.get("default") == make_lease(renewals=1)
    assert cluster.leases.get(NAMESPACE, NAME)["metadata"]["labels"]["team"] == "night"


async def test_a_lease_that_was_deleted_is_not_made_again_by_a_renewal(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble
) -> None:
    await leases.create(make_lease())
    cluster.leases.delete(NAMESPACE, NAME)
    assert await leases.update(make_lease(), make_lease(renewals=1)) is False
    assert cluster.leases.names(NAMESPACE) == []


async def test_another_lease_of_the_same_name_is_no_longer_the_expected_one(
    leases: KubernetesLeaseStore, other: KubernetesLeaseStore, cluster: ApiServerDouble
) -> None:
    await leases.create(make_lease("r1"))
    cluster.leases.delete(NAMESPACE, NAME)
    await other.create(make_lease("r2", term=2))
    assert await leases.update(make_lease("r1"), make_lease("r1", renewals=1)) is False
    assert await leases.get("default") == make_lease("r2", term=2)


async def test_a_write_whose_answer_never_comes_is_unknown_and_loses_when_it_is_repeated(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    await leases.create(make_lease())
    monkeypatch.setattr(api_module, "EXCHANGE_LIMIT_S", 2)
    cluster.silent(carried_out=True)
    with pytest.raises(StoreUnavailable, match="in time"):
        await leases.update(make_lease(), make_lease(renewals=1))
    monkeypatch.undo()
    assert await leases.update(make_lease(), make_lease(renewals=1)) is False
    assert await leases.get("default") == make_lease(renewals=1)


async def test_a_write_that_was_given_up_leaves_the_store_as_it_was(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble
) -> None:
    await leases.create(make_lease())
    cluster.silent()
    writing = asyncio.ensure_future(leases.update(make_lease(), make_lease(renewals=1)))
    await cluster.holding()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await leases.update(make_lease(), make_lease(renewals=1)) is True


async def test_not_found_in_answer_to_a_write_is_a_loss(leases: KubernetesLeaseStore, cluster: ApiServerDouble) -> None:
    await leases.create(make_lease())
    cluster.next_answer(JSONResponse({"reason": "NotFound"}, 404))
    cluster.next_answer(JSONResponse({"reason": "NotFound"}, 404))
    assert await leases.update(make_lease(), make_lease(renewals=1)) is False


async def test_the_name_may_be_another(api: KubernetesApi, cluster: ApiServerDouble) -> None:
    leases = KubernetesLeaseStore(api, "night-shift")
    await leases.create(make_lease())
    assert cluster.leases.names(NAMESPACE) == ["night-shift"]
    assert await leases.get("default") == make_lease()


# kubectl, the other program that writes Leases


async def _kubectl(cluster: ApiServerDouble, account: ServiceAccount, *words: str) -> str:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is missing; scripts/ensure-kubectl says how to install it")
    token = (account.folder / "token").read_text()
    child = await asyncio.create_subprocess_exec(
        *("kubectl", *words, "--server", cluster.url, "--token", token),
        *("--certificate-authority", str(account.folder / "ca.crt"), "--kubeconfig", "/dev/null"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await child.communicate()
    assert child.returncode == 0, errors.decode()
    return output.decode()


async def _by_kubectl(
    cluster: ApiServerDouble, account: ServiceAccount, tmp_path: Path, change: Callable[[Any], object]
) -> None:
    lease = json.loads(await _kubectl(cluster, account, "get", "--raw", f"{PATH}/{NAME}"))
    change(lease)
    file = tmp_path / "lease.json"
    file.write_text(json.dumps(lease))
    await _kubectl(cluster, account, "replace", "--raw", f"{PATH}/{NAME}", "-f", str(file))


async def test_who_was_overwritten_by_kubectl_has_lost_and_sees_by_whom(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, account: ServiceAccount, tmp_path: Path
) -> None:
    await leases.create(make_lease("r1", term=3, renewals=8))
    await _by_kubectl(cluster, account, tmp_path, lambda lease: lease["spec"].update(holderIdentity="a person"))
    renewed = make_lease("r1", term=3, renewals=9)
    assert await leases.update(make_lease("r1", term=3, renewals=8), renewed) is False
    found = await leases.get("default")
    assert found == make_lease("a person", term=3, renewals=8)
    assert found is not None
    taken = make_lease("r2", term=4, renewals=9)
    assert await leases.update(found, taken) is True
    assert await leases.get("default") == taken


async def test_who_was_deleted_by_kubectl_is_gone(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, account: ServiceAccount
) -> None:
    await leases.create(make_lease())
    await _kubectl(cluster, account, "delete", "--raw", f"{PATH}/{NAME}")
    assert await leases.update(make_lease(), make_lease(renewals=1)) is False
    assert await leases.get("default") is None
