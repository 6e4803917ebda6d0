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
    """Read by the API alone; no mirror has them."""
    ACCOUNTS = "accounts"
    """Read before a snapshot; no mirror has them."""
    AUDIT = "audit"
    """The log of who did what: only written, and read by people."""
    BUCKETS = "buckets"
    """The token buckets of tenants: admission reads and writes the database itself."""
    FAILOVERS = "failovers"
    """Reports of changes of leadership: read on demand, never by a mirror."""
    META = "meta"
    """The schema version of the database."""
