"""Access tokens, one document each; ``_id`` is the digest of the secret."""

from collections.abc import Sequence
from copy import deepcopy

from hascheduler.errors import InvariantBroken
from hascheduler.model.collection import Collection
from hascheduler.model.documents.token import encode_token
from hascheduler.model.instants import WallMs
from hascheduler.model.token import Token, sessions_of
from hascheduler.ports import StoredDocument, ended_sessions
from hascheduler.testing.memory.connection import MemoryConnection


class MemoryTokenStore:
    """`hascheduler.ports.TokenStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def create(self, token: Token) -> None:
        async with self._connection.exchange("tokens.create") as database:
            document = encode_token(token)
            if database.insert(Collection.TOKENS, document):
                return
            if database.find(Collection.TOKENS, token.digest) != document:
                raise InvariantBroken("two tokens have one digest")

    async def begin_session(self, session: Token, living_max: int, now: WallMs) -> None:
        await self.create(session)
        async with self._connection.exchange("tokens.end_sessions") as database:
            alike = sessions_of(session.id)
            found = [
                each
                for each in database.documents(Collection.TOKENS)
                if each["id"].startswith(alike) and each.get("session_of") is not None
            ]
            for digest in ended_sessions(found, session.session_of, living_max, now):
                database.delete(Collection.TOKENS, digest)

    async def list(self, tenant: str | None, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("tokens.list") as database:
            found = [
                document
                for document in database.documents(Collection.TOKENS)
                if (after is None or document["id"] > after) and tenant in (None, document["tenant"])
            ]
            return deepcopy(sorted(found, key=lambda document: str(document["id"]))[:limit])

    async def revoke(self, id: str, tenant: str | None) -> bool:
        async with self._connection.exchange("tokens.revoke") as database:
            documents = list(database.documents(Collection.TOKENS))
            for document in documents:
                if document["id"] == id and tenant in (None, document["tenant"]):
                    for session in documents:
                        if session.get("session_of") == document["_id"]:
                            database.delete(Collection.TOKENS, session["_id"])
                    return database.delete(Collection.TOKENS, document["_id"])
            return False
