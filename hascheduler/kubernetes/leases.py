"""The lease as one Lease object a name. Every write is one compare-and-set on its resource version.

A resource version changes with every edit, even of a label; the port compares (holder, term, renewals). So a write
tries the version last seen here, which is current as long as nobody else has written: a renewal is one exchange. If it
is not current, the Lease is read, compared, and written once more.

Reading a `LeaseRecord` never fails, as people with the right to may edit a Lease, and other programs take one too. What
is missing or makes no sense is 0 or empty: no candidate takes such a version for a newer one than its own. It is held
by the holder it names, and free once that holder has not renewed it for a lease duration.
"""

from collections.abc import Mapping
from typing import Any

import httpx

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.kubernetes.api import KubernetesApi, refused
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import WallMs, format_instant, parse_instant

Lease = Mapping[str, Any]
"""A stored Lease: it has a resource version and a uid."""

TERM, RENEWALS, ENDPOINT = "hascheduler/term", "hascheduler/renewals", "hascheduler/endpoint"
DURATION_MS = "hascheduler/lease-duration-ms"
_LABELS = {"app.kubernetes.io/name": "hascheduler", "app.kubernetes.io/component": "scheduler"}
_INT32_MAX = 2**31 - 1
_WHOLE_MAX = 2**53 - 2**32
"""All future terms still fit, and people do not type such a number, so nothing follows it beyond."""
_DURATION_MS_MAX = 600_000
"""No candidate waits longer for a holder that may be gone, unless its own settings say so."""
_NOT_FOUND, _CONFLICT = 404, 409


class KubernetesLeaseStore:
    """`hascheduler.ports.LeaseStore`. ``name`` is the Lease's name, by default ``hascheduler-`` and the record's name.

    Owner of the newest version of each Lease seen here; the write finds out if it still is the newest.
    """

    def __init__(self, api: KubernetesApi, name: str = "") -> None:
        self._api = api
        self._name = name
        self._seen: dict[str, Lease] = {}

    async def get(self, name: str) -> LeaseRecord | None:
        lease = await self._read("read the lease", name)
        return None if lease is None else record_in(lease, name)

    async def create(self, record: LeaseRecord) -> bool:
        doing, name = "create the lease", record.name
        body = new_lease(record, self._resource_of(name))
        answer = await self._api.exchange(doing, "POST", self._path(), body)
        if answer.status_code == _CONFLICT:
            return False
        self._keep(doing, "create", name, answer)
        return True

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        seen = self._seen.pop(expected.name, None)
        if seen is not None and _is(seen, expected) and await self._replace(seen, proposed):
            return True
        stored = await self._read("read the lease before writing it", expected.name)
        return stored is not None and _is(stored, expected) and await self._replace(stored, proposed)

    async def _read(self, doing: str, name: str) -> Lease | None:
        # Without a resource version in the question the answer is the newest, agreed on by a majority of the store.
        answer = await self._api.exchange(doing, "GET", self._path(name))
        if answer.status_code == _NOT_FOUND:
            self._seen.pop(name, None)
            return None
        return self._keep(doing, "get", name, answer)

    async def _replace(self, stored: Lease, proposed: LeaseRecord) -> bool:
        doing, name = "write the lease", proposed.name
        answer = await self._api.exchange(doing, "PUT", self._path(name), replaced_lease(stored, proposed))
        if answer.status_code in (_CONFLICT, _NOT_FOUND):
            return False
        self._keep(doing, "update", name, answer)
        return True

    def _keep(self, doing: str, verb: str, name: str, answer: httpx.Response) -> Lease:
        try:
            lease = answer.json()
        except ValueError:
            lease = None
        if not answer.is_success:
            access, resource = self._api.access, self._resource_of(name)
            raise refused(doing, access, answer.status_code, lease, verb=verb, lease=resource)
        if not _is_lease(lease):
            raise StoreUnavailable(f"{doing}: the answer is not a Lease; is this an API server?")
        self._seen[name] = lease
        return self._seen[name]

    def _resource_of(self, name: str) -> str:
        return self._name or f"hascheduler-{name}"

    def _path(self, name: str | None = None) -> str:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self._api.access.namespace}/leases"
        return leases if name is None else f"{leases}/{self._resource_of(name)}"


def _is(lease: Lease, expected: LeaseRecord) -> bool:
    found = record_in(lease, expected.name)
    return (found.holder, found.term, found.renewals) == (expected.holder, expected.term, expected.renewals)


def new_lease(record: LeaseRecord, name: str) -> dict[str, Any]:
    """Return the first Lease of its name."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "labels": _LABELS, "annotations": _annotations(record)},
        "spec": _spec(record),
    }


def replaced_lease(stored: Lease, record: LeaseRecord) -> dict[str, Any]:
    """Return ``stored`` with another record and everything else as it was; it replaces exactly that version."""
    metadata = {name: value for name, value in stored["metadata"].items() if name != "managedFields"}
    others = metadata.get("annotations") or {}
    return {
        **stored,
        "metadata": {**metadata, "annotations": {**others, **_annotations(record)}},
        "spec": {**(stored.get("spec") or {}), **_spec(record)},
    }


def _is_lease(body: Any) -> bool:
    """Return True if this is what the API server answers with; everything else in it may be missing."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return (
        isinstance(metadata, dict)
        and all(isinstance(metadata.get(name), str) and metadata[name] for name in ("resourceVersion", "uid"))
        and isinstance(metadata.get("annotations") or {}, dict)
        and isinstance(body.get("spec") or {}, dict)
    )


def record_in(lease: Lease, name: str) -> LeaseRecord:
    annotations, spec = lease["metadata"].get("annotations") or {}, lease.get("spec") or {}
    return LeaseRecord(
        name=name,
        holder=_text(spec.get("holderIdentity")),
        term=_whole(annotations.get(TERM)),
        renewals=_whole(annotations.get(RENEWALS)),
        endpoint=_text(annotations.get(ENDPOINT)),
        acquired_at_ms=_instant(spec.get("acquireTime")),
        renewed_at_ms=_instant(spec.get("renewTime")),
        lease_duration_ms=_duration_ms(spec.get("leaseDurationSeconds"), annotations.get(DURATION_MS)),
        transitions=_count(spec.get("leaseTransitions")),
    )


def _annotations(record: LeaseRecord) -> dict[str, str]:
    return {
        TERM: str(record.term),
        RENEWALS: str(record.renewals),
        ENDPOINT: record.endpoint,
        DURATION_MS: str(record.lease_duration_ms),
    }


def _spec(record: LeaseRecord) -> dict[str, Any]:
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": _seconds(record.lease_duration_ms),
        "acquireTime": _micro_time(record.acquired_at_ms),
        "renewTime": _micro_time(record.renewed_at_ms),
        "leaseTransitions": min(record.transitions, _INT32_MAX),
    }


def _seconds(duration_ms: int) -> int:
    return min(max(-(-duration_ms // 1_000), 1), _INT32_MAX)


def _duration_ms(seconds: object, exact: object) -> int:
    """Return the annotation's duration, unless the field was edited since and no longer matches it."""
    rounded, exact_ms = _count(seconds), _whole(exact)
    return min(exact_ms if exact_ms and _seconds(exact_ms) == rounded else rounded * 1_000, _DURATION_MS_MAX)


def _micro_time(at_ms: int) -> str:
    """Return the time with exactly six decimals: the API server takes no other number of them."""
    return format_instant(at_ms).removesuffix("Z") + "000Z"


def _instant(value: object) -> WallMs:
    try:
        return parse_instant(_text(value))
    except InvalidInput:
        return WallMs(0)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    text = _text(value)
    whole = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(_WHOLE_MAX)) else 0
    return whole if whole <= _WHOLE_MAX else 0


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= _INT32_MAX else 0
