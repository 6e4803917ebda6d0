"""Moves what is of one slot of tenants from one shard's database to another's.

`store` finds what is to move, in which order, and some at a time. `transactions` moves a part between two databases of
one MongoDB; `parcels` between two MongoDBs, which no transaction covers. Both demand the shares of the slot, so that
one that was asleep meanwhile moves nothing.
"""

from hascheduler.mongo.slots.store import MongoSlotStore

__all__ = ["MongoSlotStore"]
