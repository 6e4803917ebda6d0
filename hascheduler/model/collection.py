"""The collections of the database, by the names that they have there."""

from enum import StrEnum


class Collection(StrEnum):
    __hash__ = str.__hash__  # that of enumerations is of Python, and each change of a document is looked up by it
    DEFINITIONS = "definitions"
    SCHEDULES = "schedules"
    PROCESSORS = "processors"
    JOBS = "jobs"
    LEASES = "leases"
    JOURNAL = "journal"
    REPLICAS = "replicas"
    LANES = "lanes"
    CALENDARS = "calendars"
    TENANTS = "tenants"
    TOKENS = "tokens"
    PAUSES = "pauses"
    """What people have stopped: everything, or the processors of a name."""
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
    OPERATIONS = "operations"
    """Actions on all that matches, and how far they are: their runners and people read them, no mirror has them."""
    META = "meta"
    """The schema version of the database."""
