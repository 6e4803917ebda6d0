"""The collections of the database, by the names that they have there."""

from enum import StrEnum


class Collection(StrEnum):
    DEFINITIONS = "definitions"
    SCHEDULES = "schedules"
    PROCESSORS = "processors"
    JOBS = "jobs"
    LEASES = "leases"
    JOURNAL = "journal"
    REPLICAS = "replicas"
    LANES = "lanes"
    TENANTS = "tenants"
    TOKENS = "tokens"
    VERDICTS = "verdicts"
    """The API alone reads them; no mirror does."""
    ACCOUNTS = "accounts"
    """Read before a snapshot; no mirror has them."""
    AUDIT = "audit"
    """Only written, and read by people."""
    BUCKETS = "buckets"
    """How fast tenants submit: whoever lets a job in asks the database itself."""
    FAILOVERS = "failovers"
    """Read by whoever wants to know of them, never by a mirror."""
    META = "meta"
    """What the database says of itself: its schema version."""
