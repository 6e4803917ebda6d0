"""The newest checkpoint of what tenants and keys have consumed and of learned costs."""

from hascheduler.dispatch.accounts import AccountsSnapshot, decode_accounts, encode_accounts
from hascheduler.model.collection import Collection
from hascheduler.testing.memory.connection import MemoryConnection


class MemoryAccountStore:
    """`hascheduler.ports.AccountStore`."""

    def __init__(self, connection: MemoryConnection) -> None:
        self._connection = connection

    async def save(self, shard: str, term: int, accounts: AccountsSnapshot) -> bool:
        async with self._connection.exchange("accounts.save") as database:
            stored = database.find(Collection.ACCOUNTS, shard)
            if stored is not None and stored["term"] > term:
                return False
            database.replace(Collection.ACCOUNTS, {"_id": shard, "term": term, **encode_accounts(accounts)})
            return True

    async def load(self, shard: str) -> AccountsSnapshot:
        async with self._connection.exchange("accounts.load") as database:
            return decode_accounts(database.find(Collection.ACCOUNTS, shard) or {})
