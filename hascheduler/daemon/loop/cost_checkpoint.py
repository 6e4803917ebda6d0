"""Keep a record of the leader's accounts in the database, so that a start after an outage of all replicas has it.

A follower has the accounts from the stream; the record that this loop saves is read only before a snapshot. A record
that is a few seconds old, or lost, costs a little fairness and nothing else, so a failed save is only logged.
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
"""The most characters of each kind: writing more would delay decisions, and the document has to stay below 16 MiB.

A character is up to four bytes, and keys are in it twice.
"""


@dataclass
class CostCheckpoint:
    """A loop that saves the accounts. ``term`` is the present term while this replica decides, else None."""

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
        """Save the changes, if this replica leads."""
        term = self.term()
        if term is None:
            return
        accounts = self.core.state.accounts.snapshot(self.clock.wall_ms(), _ROWS_MAX, _CHARACTERS_MAX)
        if accounts == replace(self._saved, as_of_ms=accounts.as_of_ms):
            return
        try:
            if await self.store.save(self.name, term, accounts):
                self._saved = accounts
        except (StoreUnavailable, InvalidInput) as error:
            log.info("accounts_save_failed", error=str(error))

    async def load(self) -> AccountsSnapshot:
        """Return the saved accounts, or empty ones if broken; raise `StoreUnavailable` if they can't be read."""
        try:
            return await self.store.load(self.name)
        except InvalidInput as error:
            log.warning("accounts_load_failed", error=str(error))
            return AccountsSnapshot()
