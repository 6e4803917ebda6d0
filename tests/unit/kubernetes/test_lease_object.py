"""A record survives its Lease, and whatever a Lease holds is a record."""

from typing import Any

import pytest

from hascheduler.kubernetes.leases import DURATION_MS, new_lease, record_in
from hascheduler.kubernetes.leases import replaced_lease as replaced
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import LATEST_MS, WallMs
from tests.doubles.kubernetes.stored_leases import StoredLeases
from tests.factories import NOW, make_lease

RECORDS = (
    make_lease(),
    make_lease("", endpoint=""),
    make_lease("scheduler-7d9f-x2x4z.0a1b2c3d", term=10**15 - 1, renewals=10**15 - 1, transitions=2**31 - 1),
    make_lease(endpoint="[fd00::1]:7070", lease_duration_ms=600_000),
    make_lease(lease_duration_ms=1, acquired_at_ms=WallMs(0), renewed_at_ms=WallMs(1)),
    make_lease(lease_duration_ms=10_001, acquired_at_ms=WallMs(NOW + 999), renewed_at_ms=WallMs(LATEST_MS - 1)),
    make_lease("ein Halter mit Ümläuten, 日本語", term=2),
)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.holder or "released")
def test_what_is_written_is_read_back_exactly(record: LeaseRecord) -> None:
    leases = StoredLeases()
    assert record_in(leases.create("other", new_lease(record, "x")), "default") == record
    first = leases.create("ns", new_lease(make_lease("somebody", term=7), "x"))
    stored, _ = leases.replace("ns", "x", replaced(first, record))
    assert record_in(stored, "default") == record


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
    sent = replaced(edited, make_lease(renewals=1))
    assert "managedFields" not in sent["metadata"]
    stored, _ = leases.replace("ns", "x", sent)
    for what in ("labels", "ownerReferences", "uid", "creationTimestamp", "managedFields"):
        assert stored["metadata"][what] == edited["metadata"][what]
    assert stored["metadata"]["annotations"]["note"] == "do not delete"
    assert stored["spec"]["strategy"] == "OldestEmulationVersion"
    assert record_in(stored, "default") == make_lease(renewals=1)


@pytest.mark.parametrize(
    ("seconds", "exact", "duration_ms"),
    [
        (10, "9500", 9_500),
        (10, "10000", 10_000),
        (10, "10001", 10_000),  # a user has shortened it
        (20, "9500", 20_000),
        (10, "garbage", 10_000),
        (10, None, 10_000),
        (None, "9500", 0),
        (2**31 - 1, None, 600_000),
        (601, "600001", 600_000),
    ],
)
def test_the_duration_is_exact_unless_the_field_was_edited(seconds: object, exact: object, duration_ms: int) -> None:
    lease = new_lease(make_lease(), "x")
    lease["spec"]["leaseDurationSeconds"] = seconds
    lease["metadata"]["annotations"][DURATION_MS] = exact
    assert record_in(lease, "default").lease_duration_ms == duration_ms
