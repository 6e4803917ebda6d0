"""The newest checkpoint of what tenants and keys have consumed and of learned costs, for a start after all replicas
were down.

One document a name, outside of the stream: a running leader has the accounts in memory. `encode_accounts` defines the
form. 0.2.0 writes and reads ``accumulated`` alone, by key; a newer version replaces it together with ``by_tenant`` and
``tenants``, so all of them are of one moment in each document, and either version reads what the other wrote.
"""

from typing import Any

from pymongo.errors import DuplicateKeyError

from hascheduler.dispatch.accounts import AccountsSnapshot, decode_accounts, encode_accounts
from hascheduler.model.collection import Collection
from hascheduler.mongo.connection import Database
from hascheduler.mongo.faults import faults


class MongoAccountStore:
    """`hascheduler.ports.AccountStore`."""

    def __init__(self, database: Database) -> None:
        self._accounts = database[Collection.ACCOUNTS.value]

    async def save(self, name: str, term: int, accounts: AccountsSnapshot) -> bool:
        fields: dict[str, Any] = {"term": term, **encode_accounts(accounts)}
        with faults("save the accounts"):
            try:
                await self._accounts.replace_one({"_id": name, "term": {"$lte": term}}, fields, upsert=True)
            except DuplicateKeyError:
                return False
        return True

    async def load(self, name: str) -> AccountsSnapshot:
        with faults("load the accounts"):
            document = await self._accounts.find_one({"_id": name})
        return decode_accounts(document or {})
