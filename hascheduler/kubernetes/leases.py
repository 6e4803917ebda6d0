"""Who leads each shard, as one Lease a shard. Every write is one compare-and-set on its resource version.

A resource version changes with every edit, a label's too; (holder, term, renewals) are what the port compares. So a
write is tried on the version that was last seen here, which is the present one as long as no other has written: one
exchange for a renewal. Where it is not, the Lease is read, compared, and written once more.
"""

from hascheduler.kubernetes.api import ApiServerResponse, KubernetesApi
from hascheduler.kubernetes.faults import no_lease, refused
from hascheduler.kubernetes.lease_object import Lease, is_lease, new_lease, record_in, replaced_lease
from hascheduler.model.lease import LeaseRecord

_NOT_FOUND, _CONFLICT = 404, 409


class KubernetesLeaseStore:
    """`hascheduler.ports.LeaseStore`. ``name`` is the Lease's; without one each shard's is ``hascheduler-<shard>``.

    Owner of the newest version of each Lease that was seen here; whether it still is the newest the write finds out.
    """

    def __init__(self, api: KubernetesApi, name: str = "") -> None:
        self._api = api
        self._name = name
        self._seen: dict[str, Lease] = {}

    async def get(self, shard: str) -> LeaseRecord | None:
        lease = await self._read("read the lease", shard)
        return None if lease is None else record_in(lease, shard)

    async def create(self, record: LeaseRecord) -> bool:
        doing, shard = "create the lease", record.shard
        body = new_lease(record, self._name_of(shard))
        answer = await self._api.exchange(doing, "POST", self._path(), body)
        if answer.status == _CONFLICT:
            return False
        self._keep(doing, "create", shard, answer)
        return True

    async def update(self, expected: LeaseRecord, proposed: LeaseRecord) -> bool:
        seen = self._seen.pop(expected.shard, None)
        if seen is not None and _is(seen, expected) and await self._replace(seen, proposed):
            return True
        stored = await self._read("read the lease before writing it", expected.shard)
        return stored is not None and _is(stored, expected) and await self._replace(stored, proposed)

    async def _read(self, doing: str, shard: str) -> Lease | None:
        # Without a resource version in the question the answer is the newest, agreed on by a majority of the store.
        answer = await self._api.exchange(doing, "GET", self._path(shard))
        if answer.status == _NOT_FOUND:
            self._seen.pop(shard, None)
            return None
        return self._keep(doing, "get", shard, answer)

    async def _replace(self, stored: Lease, proposed: LeaseRecord) -> bool:
        doing, shard = "write the lease", proposed.shard
        answer = await self._api.exchange(doing, "PUT", self._path(shard), replaced_lease(stored, proposed))
        if answer.status in (_CONFLICT, _NOT_FOUND):
            return False
        self._keep(doing, "update", shard, answer)
        return True

    def _keep(self, doing: str, verb: str, shard: str, answer: ApiServerResponse) -> Lease:
        if not answer.succeeded:
            access, name = self._api.access, self._name_of(shard)
            raise refused(doing, access, answer.status, answer.body, verb=verb, lease=name)
        if not is_lease(answer.body):
            raise no_lease(doing)
        lease: Lease = answer.body
        self._seen[shard] = lease
        return lease

    def _name_of(self, shard: str) -> str:
        return self._name or f"hascheduler-{shard}"

    def _path(self, shard: str | None = None) -> str:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self._api.access.namespace}/leases"
        return leases if shard is None else f"{leases}/{self._name_of(shard)}"


def _is(lease: Lease, expected: LeaseRecord) -> bool:
    found = record_in(lease, expected.shard)
    return (found.holder, found.term, found.renewals) == (expected.holder, expected.term, expected.renewals)
