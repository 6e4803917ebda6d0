"""Definitions as the API writes them."""

from collections.abc import Sequence
from copy import deepcopy

from hascheduler.memory.connection import MemoryConnection
from hascheduler.model.definition import Definition
from hascheduler.model.documents import Collection, encode_definition
from hascheduler.ports import StoredDocument


class MemoryDefinitionStore:
    """`hascheduler.ports.DefinitionStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def create(self, definition: Definition) -> StoredDocument | None:
        async with self._connection.exchange("definitions.create") as database:
            document = encode_definition(definition) | {"rev": 1}
            return document if database.insert(Collection.DEFINITIONS, document) else None

    async def put(self, definition: Definition) -> tuple[StoredDocument, bool]:
        async with self._connection.exchange("definitions.put") as database:
            stored = database.find(Collection.DEFINITIONS, definition.name)
            document = encode_definition(definition) | {"rev": 1 if stored is None else stored["rev"] + 1}
            if stored is None:
                database.insert(Collection.DEFINITIONS, document)
                return document, True
            return deepcopy(database.update(Collection.DEFINITIONS, stored, document)), False

    async def replace(self, definition: Definition, rev: int) -> StoredDocument | None:
        async with self._connection.exchange("definitions.replace") as database:
            stored = database.find(Collection.DEFINITIONS, definition.name)
            if stored is None or stored["rev"] != rev:
                return None
            fields = encode_definition(definition) | {"rev": rev + 1}
            return deepcopy(database.update(Collection.DEFINITIONS, stored, fields))

    async def get(self, name: str) -> StoredDocument | None:
        async with self._connection.exchange("definitions.get") as database:
            return deepcopy(database.find(Collection.DEFINITIONS, name))

    async def list(self, after: str | None, limit: int) -> Sequence[StoredDocument]:
        async with self._connection.exchange("definitions.list") as database:
            return deepcopy(database.page(Collection.DEFINITIONS, after, limit))

    async def delete(self, name: str, rev: int | None = None) -> bool:
        async with self._connection.exchange("definitions.delete") as database:
            stored = database.find(Collection.DEFINITIONS, name)
            if stored is None or rev not in (None, stored["rev"]):
                return False
            return database.delete(Collection.DEFINITIONS, name)
