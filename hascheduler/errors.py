"""All errors, split by whose fault they are.

::

    HaschedulerError
    ├── CallerError            the caller's: a clear answer, nothing written
    │   ├── TooMany            the caller's tenant has asked for too much: retry at the given time
    │   ├── InvalidInput       what, where (path) and what would be right
    │   ├── NotFound
    │   └── Conflict           the name is taken, or the state is not the one that was meant
    │       └── RevisionMismatch   it was edited since it was read
    ├── WorldError             the world's: retry, with backoff and a limit
    │   ├── StoreUnavailable   MongoDB did not answer, or the answer is unknown
    │   │   ├── Unreachable        and why: which address, what is wrong, what to do
    │   │   └── StoreOverloaded    it answered, and refused the request because it has too much to do
    │   ├── HistoryLost        the stream can't be resumed: read everything again
    │   ├── DatabaseUnfit      MongoDB answers, but is not as this release needs it: only people can repair that
    │   ├── BrokerUnavailable  RabbitMQ did not answer, or it is blocking us
    │   └── Overloaded         this replica has too much to do: retry at the given time
    └── InvariantBroken        ours: ends the replica, the lease lapses, another leads

Expected outcomes (a claim that lost, a job that is already done) are values, never exceptions.
"""


class HaschedulerError(Exception):
    """The base class; catch one of its three branches instead."""


class CallerError(HaschedulerError):
    """The request can't be carried out as it was made."""


class InvalidInput(CallerError):
    """A value is wrong: ``path`` names it (``("trigger", "every")``), ``expected`` describes a right one."""

    def __init__(self, path: tuple[str | int, ...], problem: str, expected: str = "") -> None:
        self.path = path
        self.problem = problem
        self.expected = expected
        where = ".".join(str(part) for part in path)
        super().__init__(f"{where}: {problem}" + (f"; expected {expected}" if expected else ""))


class NotFound(CallerError):
    """There is no ``kind`` with that id."""

    def __init__(self, kind: str, id: str) -> None:
        self.kind = kind
        self.id = id
        super().__init__(f"no {kind} {id!r}")


class Conflict(CallerError):
    """The request was right for a state that no longer holds, or the name is taken."""


class RevisionMismatch(Conflict):
    """The request is for another revision of ``kind`` ``id`` than ``rev``, the stored one."""

    def __init__(self, kind: str, id: str, rev: object) -> None:
        self.rev = rev
        stored = "does not exist" if rev is None else f"is at revision {rev}"
        super().__init__(f"{kind} {id!r} {stored}, which is not the revision in the request; read it again")


class TooMany(CallerError):
    """More than the tenant may have; nothing was written. ``retry_after_s`` estimates when to retry."""

    def __init__(self, problem: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(problem)


class WorldError(HaschedulerError):
    """Something outside this process failed; the same call may succeed later."""


class StoreUnavailable(WorldError):
    """The database did not answer in time, or it is unknown if it carried out the write."""


class Unreachable(StoreUnavailable):
    """The database can't be used, for a known reason.

    ``mistake`` is the error in the settings, if the world is not the reason. If it ``stays``, waiting does not help.
    """

    def __init__(self, mistake: InvalidInput, *, stays: bool = False) -> None:
        self.mistake = mistake
        self.stays = stays
        super().__init__(str(mistake))


class StoreOverloaded(StoreUnavailable):
    """The database refused the request because it has too much to do. It is alive, and so is who sent the request."""


class HistoryLost(WorldError):
    """The change stream can't continue from its position; only a full resync is free of gaps."""


class DatabaseUnfit(WorldError):
    """The database has another schema version, an index of another shape, or denies a right: a retry is no use."""


class BrokerUnavailable(WorldError):
    """The message broker is away or does not take messages."""


class Overloaded(WorldError):
    """There is too much to do already; nothing was written. ``retry_after_s`` estimates when to retry."""

    def __init__(self, problem: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(problem)


class InvariantBroken(HaschedulerError):
    """An invariant does not hold: a defect of ours. The replica stops rather than guess."""
