"""Access tokens, one document each; ``_id`` is the digest of the secret."""

from collections.abc import Sequence
from typing import Any

from pymongo import ASCENDING
from pymongo.errors import DuplicateKeyError

from hascheduler.errors import InvariantBroken
from hascheduler.model.collection import Collection
from hascheduler.model.token import session_id, sessions_of
from hascheduler.model.values.instants import WallMs
from hascheduler.mongo.connection import MAJORITY, Database
from hascheduler.mongo.faults import faults
from hascheduler.ports import StoredDocument, ended_sessions
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
                # An equal one is its own, from a try whose answer got lost; another one would mean broken randomness.
                if await self._tokens.find_one({"_id": token.digest}) != document:
                    raise InvariantBroken("two tokens have one id or one digest") from None

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
    """The ids with that beginning, which ends with a dash: a range of an index that every release has."""
    return {"id": {"$gte": begin, "$lt": f"{begin[:-1]}."}}
