"""The lease at an API server: what its versions bring with them, and what happens when it fails."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from hascheduler.errors import StoreUnavailable
from hascheduler.kubernetes import api as api_module
from hascheduler.kubernetes.api import KubernetesApi
from hascheduler.kubernetes.leases import KubernetesLeaseStore, new_lease, record_in, replaced_lease
from tests.doubles.kubernetes.api_server import ApiServerDouble
from tests.doubles.kubernetes.service_account import NAMESPACE, ServiceAccount
from tests.doubles.kubernetes.stored_leases import StoredLeases
from tests.factories import make_lease
from tests.tiers import spread
from tests.unit.tls.certificates import Authority

# Versions, uids and fields

NAME = "hascheduler-default"


@pytest.fixture
def other(api: KubernetesApi) -> KubernetesLeaseStore:
    """Another process's store."""
    return KubernetesLeaseStore(api)


async def test_a_renewal_is_one_exchange(leases: KubernetesLeaseStore, cluster: ApiServerDouble) -> None:
    await leases.create(make_lease())
    for renewals in range(3):
        assert await leases.update(make_lease(renewals=renewals), make_lease(renewals=renewals + 1)) is True
    assert cluster.asked == ["POST", *[f"PUT {NAME}"] * 3]


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


def test_the_fields_are_what_kubectl_shows() -> None:
    lease = new_lease(make_lease("r1", term=4, renewals=9, lease_duration_ms=2_500, transitions=3), "x")
    assert lease["spec"] == {
        "holderIdentity": "r1",
        "leaseDurationSeconds": 3,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 3,
    }
    assert lease["metadata"]["annotations"] == {
        "hascheduler/term": "4",
        "hascheduler/renewals": "9",
        "hascheduler/endpoint": "127.0.0.1:1",
        "hascheduler/lease-duration-ms": "2500",
    }


def test_what_others_have_put_there_stays() -> None:
    leases = StoredLeases()
    leases.create("ns", new_lease(make_lease(), "x"))

    def change(lease: Any) -> None:
        lease["metadata"]["labels"]["team"] = "night"
        lease["metadata"]["annotations"]["note"] = "do not delete"
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
        lease["metadata"]["ownerReferences"] = [owner]
        lease["spec"]["strategy"] = "OldestEmulationVersion"

    leases.edit("ns", "x", change)
    edited = leases.get("ns", "x")
    sent = replaced_lease(edited, make_lease(renewals=1))
    assert "managedFields" not in sent["metadata"]
    stored, _ = leases.replace("ns", "x", sent)
    for what in ("labels", "ownerReferences", "uid", "creationTimestamp", "managedFields"):
        assert stored["metadata"][what] == edited["metadata"][what]
    assert stored["metadata"]["annotations"]["note"] == "do not delete"
    assert stored["spec"]["strategy"] == "OldestEmulationVersion"
    assert record_in(stored, "default") == make_lease(renewals=1)


# Whatever the API server does or says, the store answers with a value or with `StoreUnavailable`, and in time

Call = Callable[[KubernetesLeaseStore], Awaitable[object]]


async def _get(leases: KubernetesLeaseStore) -> object:
    return await leases.get("default")


async def _create(leases: KubernetesLeaseStore) -> object:
    return await leases.create(make_lease())


async def _update(leases: KubernetesLeaseStore) -> object:
    return await leases.update(make_lease(), make_lease(renewals=1))


CALLS: dict[str, Call] = {"get": _get, "create": _create, "update": _update}


@pytest.fixture(params=CALLS)
async def call(request: pytest.FixtureRequest, leases: KubernetesLeaseStore) -> Call:
    """Each method of the port, where it would succeed."""
    if request.param != "create":
        await leases.create(make_lease())
    return CALLS[request.param]


def _said(status: int, message: str = "no reason") -> Response:
    return JSONResponse({"kind": "Status", "message": message, "code": status}, status)


ANSWERS: tuple[tuple[Response, str], ...] = (
    (_said(500), "answered 500"),
    (_said(503, "the server is shutting down"), "answered 503 (the server is shutting down)"),
    (JSONResponse({"message": "slow down"}, 429, {"Retry-After": "7"}), "is overloaded (slow down)"),
    (RedirectResponse("https://login.example.com/"), "answered 307"),
    (PlainTextResponse("<html>log in"), "is not a Lease"),
    (JSONResponse(["no", "object"]), "is not a Lease"),
    (JSONResponse({"metadata": {"uid": 5, "resourceVersion": "1"}}), "is not a Lease"),
    (JSONResponse({"metadata": {"uid": "u", "resourceVersion": "1", "annotations": ["a"]}}), "is not a Lease"),
    (JSONResponse({"metadata": {"uid": "u", "resourceVersion": "1"}, "spec": "s"}), "is not a Lease"),
)


@pytest.mark.parametrize(("answer", "said"), spread((pytest.param(*row, id=row[1]) for row in ANSWERS), check=5))
async def test_an_answer_that_says_nothing_is_the_store_s_absence(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, call: Call, answer: Response, said: str
) -> None:
    cluster.next_answer(answer)
    with pytest.raises(StoreUnavailable) as raised:
        await call(leases)
    assert said in str(raised.value)
    await call(leases)


async def test_an_unknown_token_is_named_by_its_file(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, account: ServiceAccount, call: Call
) -> None:
    cluster.tokens = {"another"}
    with pytest.raises(StoreUnavailable, match="rejects the token in") as raised:
        await call(leases)
    assert str(account.folder / "token") in str(raised.value)


async def test_a_rotated_token_is_used_at_once(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, account: ServiceAccount, call: Call
) -> None:
    cluster.tokens = {"the-second-token"}
    account.rotate("the-second-token\n")
    await call(leases)


@pytest.mark.parametrize("content", [None, b"", b"a\nb", b"caf\xc3\xa9", b"\xff\xfe"])
async def test_an_invalid_token_makes_the_store_unavailable_and_is_never_shown(
    leases: KubernetesLeaseStore, account: ServiceAccount, call: Call, content: bytes | None
) -> None:
    token = account.folder / "token"
    token.unlink()
    if content is not None:
        token.write_bytes(content)
    with pytest.raises(StoreUnavailable) as raised:
        await call(leases)
    assert "a\\nb" not in str(raised.value)
    account.rotate("the-first-token")
    await call(leases)


async def test_who_falls_silent_is_waited_for_only_so_long(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.silent()
    with monkeypatch.context() as short:
        short.setattr(api_module, "EXCHANGE_LIMIT_S", 0.1)
        with pytest.raises(StoreUnavailable, match="did not answer in time"):
            await call(leases)
    cluster.silent(0)  # who is slow here may have given up before it was asked
    await call(leases)


async def test_a_server_with_another_certificate_does_not_get_the_token(
    leases: KubernetesLeaseStore, cluster: ApiServerDouble, call: Call, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    cluster.use(stranger.issue("api-server"))
    await cluster.close()
    await cluster.open()
    asked = len(cluster.asked)
    with pytest.raises(StoreUnavailable, match="certificate verify failed"):
        await call(leases)
    assert len(cluster.asked) == asked
