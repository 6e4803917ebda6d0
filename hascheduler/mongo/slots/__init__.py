"""Moves what is of one slot of tenants from one shard's database to another's.

`store` finds what is to move, in which order, and some at a time. `transactions` moves a part between two databases of
one MongoDB; `parcels` between two MongoDBs, which no transaction covers. Both demand the holds of the slot, so that
one that was asleep meanwhile moves nothing. `left_open` ends what one that was killed has left in the middle.
"""

from hascheduler.mongo.slots.left_open import LeftTransactions
from hascheduler.mongo.slots.store import MongoSlotStore

__all__ = ["LeftTransactions", "MongoSlotStore"]
