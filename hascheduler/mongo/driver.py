"""The few places where PyMongo's asynchronous client and Motor differ.

Motor returns cursors and change streams at once where PyMongo must be awaited, and the reverse for sessions.
"""

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bson import Timestamp

from hascheduler.mongo.connection import Database


async def resolved(value: Any) -> Any:
    """``value``, awaited where this driver wants that."""
    return await value if inspect.isawaitable(value) else value


@asynccontextmanager
async def session_after(database: Database, moment: Timestamp | None) -> AsyncIterator[Any]:
    """A causally consistent session whose majority reads see at least everything up to ``moment``."""
    async with await resolved(database.client.start_session(causal_consistency=True)) as session:
        if moment is not None:
            session.advance_operation_time(moment)
        yield session
