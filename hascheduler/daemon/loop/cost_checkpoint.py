"""Keeps a record of the leader's accounts in the database, so that a start after an outage of all replicas has it.

A replica that follows has the accounts from the stream; what this loop saves is read only before a snapshot. A record
that is a few seconds old, or lost, costs a little fairness and nothing else, so a save that fails is only logged.
"""

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace

import structlog

from hascheduler.dispatch.accounts import AccountsSnapshot
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.ports import AccountStore, Clock

log = structlog.get_logger(__name__)

SAVE_EVERY_S = 10.0
_ROWS_MAX = 10_000
_CHARACTERS_MAX = 1_000_000
"""The most characters of each kind: to write down more would hold up decisions, and the document has to stay below
16 MiB. A character is up to four bytes, and keys stand in it twice."""


@dataclass
class CostCheckpoint:
    """``term`` is the present term while this replica decides, else None."""

    core: Dispatcher
    store: AccountStore
    clock: Clock
    _: KW_ONLY
    name: str
    term: Callable[[], int | None]
    _saved: AccountsSnapshot = field(default_factory=AccountsSnapshot, init=False)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SAVE_EVERY_S)
            await self.save()

    async def save(self) -> None:
        """Save what has changed, if this replica leads."""
        term = self.term()
        if term is None:
            return
        accounts = self.core.accounts(self.clock.wall_ms(), _ROWS_MAX, _CHARACTERS_MAX)
        if accounts == replace(self._saved, as_of_ms=accounts.as_of_ms):
            return
        try:
            if await self.store.save(self.name, term, accounts):
                self._saved = accounts
        except (StoreUnavailable, InvalidInput) as error:
            log.info("accounts_not_saved", error=str(error))

    async def load(self) -> AccountsSnapshot:
        """What was saved last; `StoreUnavailable` when that can't be read. A record that is broken counts as none."""
        try:
            return await self.store.load(self.name)
        except InvalidInput as error:
            log.warning("accounts_unreadable", error=str(error))
            return AccountsSnapshot()
