"""Access tokens, whose ``_id`` is the digest of the secret, and the audit log, one document a request."""

import re
from collections.abc import Sequence
from typing import Any

from pymongo import ASCENDING, DESCENDING
from pymongo.errors import BulkWriteError, DuplicateKeyError

from hascheduler.errors import InvariantBroken
from hascheduler.model.collection import Collection
from hascheduler.model.token import session_id, sessions_of
from hascheduler.model.values.instants import WallMs, to_datetime
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import DUPLICATE_KEY, faults
from hascheduler.ports import AuditFilter, StoredDocument, ended_sessions
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.noun import document_of
from hascheduler.schema.token import Token


class MongoTokenStore:
    """`hascheduler.ports.TokenStore`."""

    def __init__(self, database: Database) -> None:
        self._tokens = database[Collection.TOKENS.value].with_options(write_concern=MAJORITY)

    async def create(self, token: Token) -> None:
        document = document_of(token)
        with faults("create the token"):
            try:
                await self._tokens.insert_one(document)
            except DuplicateKeyError:
                # An equal token is from a try whose answer got lost; a different one would mean broken randomness.
                if await self._tokens.find_one({"_id": token.digest}) != document:
                    raise InvariantBroken("two tokens have the same id or digest") from None

    async def begin_session(self, session: Token, living_max: int, now: WallMs) -> None:
        await self.create(session)
        begin = sessions_of(session.id)
        which = {**_ids(begin), "session_of": {"$ne": None}}
        fields = {"id": 1, "session_of": 1, "created_at_ms": 1, "expires_at_ms": 1}
        with faults("end sessions"):
            found = await self._tokens.find(which, fields).to_list(None)
            ended = ended_sessions(found, session.session_of, living_max, now)
            if ended:
                await self._tokens.delete_many({"_id": {"$in": ended}})

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        which: dict[str, Any] = {} if after is None else {"id": {"$gt": after}}
        if tenant is not None:
            which["tenant"] = tenant
        with faults("list the tokens"):
            return await self._tokens.find(which).sort("id", ASCENDING).limit(limit).to_list(None)

    async def revoke(self, id: str, tenant: str | None) -> bool:
        which = {"id": id} if tenant is None else {"id": id, "tenant": tenant}
        with faults("revoke the token"):
            found = await self._tokens.find_one(which, {"id": 1})
            if found is None:
                return False
            await self._tokens.delete_many({**_ids(session_id(id, "")), "session_of": found["_id"]})
            answer = await self._tokens.delete_one({"_id": found["_id"]})
        return answer.deleted_count == 1


def _ids(begin: str) -> dict[str, Any]:
    """Return the filter for ids with this prefix, which ends with a dash: a range of an index of every release."""
    return {"id": {"$gte": begin, "$lt": f"{begin[:-1]}."}}


_TRIMMED_MAX = 5_000


class MongoAuditStore:
    """`hascheduler.ports.AuditStore`; records are kept for ``retention_ms``."""

    def __init__(self, database: Database, retention_ms: int) -> None:
        self._records = database[Collection.AUDIT.value].with_options(write_concern=MAJORITY)
        self._retention_ms = retention_ms

    async def append(self, records: Sequence[AuditRecord]) -> None:
        if not records:
            return
        documents = [
            document_of(record) | {"expire_at": to_datetime(record.at_ms + self._retention_ms)} for record in records
        ]
        with faults("write the audit log"):
            try:
                await self._records.insert_many(documents, ordered=False)
            except BulkWriteError as error:
                # Duplicates are records of an earlier try whose answer got lost.
                if any(failure["code"] != DUPLICATE_KEY for failure in error.details["writeErrors"]):
                    raise

    async def trim(self, records_max: int) -> int:
        with faults("trim the audit log"):
            excess = min(await self._records.estimated_document_count() - records_max, _TRIMMED_MAX)
            if excess <= 0:
                return 0
            oldest = self._records.find({}, {"_id": True}).sort("_id", ASCENDING)
            last = await oldest.skip(excess - 1).limit(1).to_list(None)
            if not last:
                return 0
            return (await self._records.delete_many({"_id": {"$lte": last[0]["_id"]}})).deleted_count

    async def list(self, which: AuditFilter, after: str | None, limit: int) -> Sequence[StoredDocument]:
        conditions: list[dict[str, Any]] = []
        if after is not None:
            conditions.append({"_id": {"$lt": after}})
        if which.since_ms is not None:
            # Ids begin with the instant.
            conditions.append({"_id": {"$gte": f"{max(0, which.since_ms):013d}"}})
        if which.who is not None:
            conditions.append({"$or": [{"who": which.who}, {"token_id": which.who}]})
        if which.tenant is not None:
            conditions.append({"tenant": which.tenant})
        if which.path is not None:
            conditions.append({"path": {"$regex": f"^{re.escape(which.path)}"}})
        with faults("read the audit log"):
            return await (
                self._records.find({"$and": conditions} if conditions else {})
                .sort("_id", DESCENDING)
                .limit(limit)
                .to_list(None)
            )
