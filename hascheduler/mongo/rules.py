"""Definitions as processors need them: the timeouts and retries of the jobs they start, a moment old at most."""

import asyncio

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import Definition
from hascheduler.model.documents import LEAN_FIELDS, Collection, decode_definition
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults

AGE_MAX_S = 2.0
_KEPT_MAX = 1_000


class Rules:
    """Owner of the definitions that were read lately."""

    def __init__(self, database: Database) -> None:
        self._definitions = database[Collection.DEFINITIONS.value]
        self._read: dict[str, tuple[Definition, float]] = {}

    async def of(self, name: str) -> Definition:
        """As it was `AGE_MAX_S` ago or later; one that is not there, or can't be read, has the defaults."""
        now = asyncio.get_running_loop().time()
        known = self._read.get(name)
        if known is not None and now - known[1] < AGE_MAX_S:
            return known[0]
        with faults("read the definition"):
            document = await self._definitions.find_one({"_id": name}, list(LEAN_FIELDS[Collection.DEFINITIONS]))
        try:
            definition = Definition(name) if document is None else decode_definition(name, document)
        except InvalidInput:
            definition = Definition(name)
        if len(self._read) >= _KEPT_MAX:
            self._read.clear()
        self._read[name] = (definition, now)
        return definition
