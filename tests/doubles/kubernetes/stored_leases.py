"""The Leases that an API server keeps, with the versions, uids, checks and refusals of the real one.

What matters of it here: a resource version changes with every change and only then; a PUT without one is refused; one
to a Lease that does not exist *makes* it, unless it names a uid; the server alone writes uid, creation time and managed
fields, and keeps them where a PUT leaves them out.
"""

import copy
import re
import uuid
from collections.abc import Callable
from typing import Any

import kubernetes_validate

Lease = dict[str, Any]

VERSION = "1.32"
_MICRO_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}(Z|[+-][0-9]{2}:[0-9]{2})")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ANNOTATION = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_INT32 = range(-(2**31), 2**31)
_ANNOTATION_BYTES_MAX = 256 * 1024


class Refused(Exception):
    def __init__(self, status: int, reason: str, message: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


class StoredLeases:
    """Owner of all Leases of all namespaces."""

    def __init__(self) -> None:
        self._leases: dict[tuple[str, str], Lease] = {}
        self._revision = 1_000

    def names(self, namespace: str) -> list[str]:
        return sorted(name for where, name in self._leases if where == namespace)

    def get(self, namespace: str, name: str) -> Lease:
        found = self._leases.get((namespace, name))
        if found is None:
            raise Refused(404, "NotFound", f'leases.coordination.k8s.io "{name}" not found')
        return copy.deepcopy(found)

    def create(self, namespace: str, body: Lease) -> Lease:
        _demand_valid(namespace, body)
        name = body["metadata"]["name"]
        if body["metadata"].get("resourceVersion"):
            raise Refused(400, "BadRequest", "resourceVersion should not be set on objects to be created")
        if (namespace, name) in self._leases:
            raise Refused(409, "AlreadyExists", f'leases.coordination.k8s.io "{name}" already exists')
        return self._put(namespace, body, uid=str(uuid.uuid4()))

    def replace(self, namespace: str, name: str, body: Lease) -> tuple[Lease, bool]:
        """What is stored now, and whether that made it."""
        _demand_valid(namespace, body)
        metadata = body["metadata"]
        if metadata["name"] != name:
            raise Refused(400, "BadRequest", "the name of the object does not match the name on the URL")
        stored = self._leases.get((namespace, name))
        if stored is None:
            if metadata.get("uid"):
                raise _conflict(name, f"Precondition failed: UID in precondition: {metadata['uid']}, UID in meta: ")
            return self._put(namespace, body, uid=str(uuid.uuid4())), True
        if metadata.get("uid") not in (None, "", stored["metadata"]["uid"]):
            raise _conflict(name, "Precondition failed: UID in precondition")
        if not metadata.get("resourceVersion"):
            raise Refused(422, "Invalid", "metadata.resourceVersion: must be specified for an update")
        if metadata["resourceVersion"] != stored["metadata"]["resourceVersion"]:
            raise _conflict(name, "the object has been modified; please apply your changes to the latest version")
        if _said(body) == _said(stored):
            return copy.deepcopy(stored), False
        return self._put(namespace, body, uid=stored["metadata"]["uid"]), False

    def delete(self, namespace: str, name: str) -> Lease:
        found = self.get(namespace, name)
        del self._leases[namespace, name]
        return found

    def edit(self, namespace: str, name: str, change: Callable[[Lease], object]) -> None:
        """By hand: read, changed, and put back as ``kubectl edit`` does, whatever the others do meanwhile."""
        lease = self.get(namespace, name)
        change(lease)
        self.replace(namespace, name, lease)

    def _put(self, namespace: str, body: Lease, uid: str) -> Lease:
        self._revision += 1
        lease = copy.deepcopy(body)
        known = self._leases.get((namespace, lease["metadata"]["name"]), {"metadata": {}})["metadata"]
        lease["metadata"] |= {
            "namespace": namespace,
            "uid": uid,
            "resourceVersion": str(self._revision),
            "creationTimestamp": known.get("creationTimestamp", "2030-01-01T00:00:00Z"),
            "managedFields": known.get("managedFields", [{"manager": "test", "operation": "Update"}]),
        }
        self._leases[namespace, lease["metadata"]["name"]] = lease
        return copy.deepcopy(lease)


def _conflict(name: str, why: str) -> Refused:
    return Refused(409, "Conflict", f'Operation cannot be fulfilled on leases.coordination.k8s.io "{name}": {why}')


def _said(lease: Lease) -> Any:
    """What clients have a say in."""
    said = ("labels", "annotations", "ownerReferences", "finalizers")
    return [lease["metadata"].get(what) for what in said], lease.get("spec")


_valid_shapes: set[object] = set()
"""The schema is about names and types alone, and slow: once for each is enough."""


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return frozenset((key, _shape(each)) for key, each in value.items())
    return tuple(map(_shape, value)) if isinstance(value, list) else type(value)


def _demand_valid(namespace: str, body: Any) -> None:
    if not isinstance(body, dict) or (body.get("apiVersion"), body.get("kind")) != ("coordination.k8s.io/v1", "Lease"):
        raise Refused(400, "BadRequest", "the object provided is unrecognized")
    shape = _shape(body)
    if shape not in _valid_shapes:
        try:
            kubernetes_validate.validate(body, VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise Refused(400, "BadRequest", f"Lease in version v1 cannot be handled as a Lease: {error}") from None
        _valid_shapes.add(shape)
    metadata, spec = body.get("metadata") or {}, body.get("spec") or {}
    if metadata.get("namespace") not in (None, "", namespace):
        raise Refused(400, "BadRequest", "the namespace of the provided object does not match the namespace sent")
    for name in ("acquireTime", "renewTime"):
        if spec.get(name) is not None and not _MICRO_TIME.fullmatch(spec[name]):
            raise Refused(400, "BadRequest", f"parsing time {spec[name]!r} as 2006-01-02T15:04:05.000000Z07:00")
    for name in ("leaseDurationSeconds", "leaseTransitions"):
        if spec.get(name) is not None and spec[name] not in _INT32:
            raise Refused(400, "BadRequest", f"spec.{name} does not fit int32")
    annotations = metadata.get("annotations") or {}
    size = sum(map(len, [*annotations, *annotations.values()]))
    wrong = {
        "metadata.name": not _NAME.fullmatch(metadata.get("name", "")),
        "spec.leaseDurationSeconds": (spec.get("leaseDurationSeconds") or 1) <= 0,
        "spec.leaseTransitions": (spec.get("leaseTransitions") or 0) < 0,
        "metadata.annotations": not all(_ANNOTATION.fullmatch(key) for key in annotations),
        "the size of metadata.annotations": size > _ANNOTATION_BYTES_MAX,
    }
    for what, is_wrong in wrong.items():
        if is_wrong:
            raise Refused(422, "Invalid", f"Lease is invalid: {what}")
