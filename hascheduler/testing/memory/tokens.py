"""Access tokens, one document each; ``_id`` is the digest of the secret."""

from collections.abc import Sequence
from copy import deepcopy

from hascheduler.errors import InvariantBroken
from hascheduler.model.collection import Collection
from hascheduler.model.documents.token import encode_token
from hascheduler.model.token import Token
from hascheduler.ports import StoredDocument
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
            for document in database.documents(Collection.TOKENS):
                if document["id"] == id and tenant in (None, document["tenant"]):
                    return database.delete(Collection.TOKENS, document["_id"])
            return False
