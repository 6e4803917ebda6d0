"""Everything that can go wrong, split by whose fault it is.

::

    HaschedulerError
    ├── CallerError            the caller's: a clear answer, nothing written
    │   ├── TooMany            the caller's tenant has asked for too much: come again when it says
    │   ├── InvalidInput       what, where (path) and what would be right
    │   ├── NotFound
    │   └── Conflict           the name is taken, or the state is not the one that was meant
    │       └── RevisionMismatch   it was edited since it was read
    ├── WorldError             the world's: try again, with backoff and an end
    │   ├── StoreUnavailable   MongoDB did not answer, or the answer is unknown
    │   │   └── Unreachable        and why: which address, what is wrong, what to do
    │   ├── HistoryLost        the stream can't be resumed: read everything again
    │   ├── DatabaseUnfit      MongoDB answers, but is not as this release needs it: only people can mend that
    │   ├── BrokerUnavailable  RabbitMQ did not answer, or it is blocking us
    │   └── Overloaded         this replica has too much to do: come again when it says
    └── InvariantBroken        ours: ends the replica, the lease lapses, another leads

Expected outcomes (a claim that lost, a job that is already done) are values, never exceptions.
"""


class HaschedulerError(Exception):
    """The root; catch one of its three branches instead."""


class CallerError(HaschedulerError):
    """The request can't be carried out as it was made."""


class InvalidInput(CallerError):
    """A value is wrong. ``path`` names it (``("trigger", "every")``), ``expected`` says what would be right."""

    def __init__(self, path: tuple[str | int, ...], problem: str, expected: str = "") -> None:
        self.path = path
        self.problem = problem
        self.expected = expected
        where = ".".join(str(part) for part in path)
        super().__init__(f"{where}: {problem}" + (f"; expected {expected}" if expected else ""))


class NotFound(CallerError):
    """No ``kind`` goes by that id."""

    def __init__(self, kind: str, id: str) -> None:
        self.kind = kind
        self.id = id
        super().__init__(f"no {kind} {id!r}")


class Conflict(CallerError):
    """The request was right for a state that no longer holds, or the name is taken."""


class RevisionMismatch(Conflict):
    """The request is meant for another revision of ``kind`` ``id`` than ``rev``, which is the stored one."""

    def __init__(self, kind: str, id: str, rev: object) -> None:
        self.rev = rev
        stored = "does not exist" if rev is None else f"is at revision {rev}"
        super().__init__(f"{kind} {id!r} {stored}, which is not what the request was meant for; read it again")


class TooMany(CallerError):
    """More than the tenant may have; nothing was written. ``retry_after_s`` is when it may, as far as is known."""

    def __init__(self, problem: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(problem)


class WorldError(HaschedulerError):
    """Something outside this process failed; the same call may succeed later."""


class StoreUnavailable(WorldError):
    """The database did not answer in time, or whether it carried the write out is unknown."""


class Unreachable(StoreUnavailable):
    """The database can't be used, and why is known: ``mistake`` is what the settings have wrong, if it is not the
    world. Where it ``stays``, no waiting mends it."""

    def __init__(self, mistake: InvalidInput, *, stays: bool = False) -> None:
        self.mistake = mistake
        self.stays = stays
        super().__init__(str(mistake))


class HistoryLost(WorldError):
    """The change stream can't continue from where it was; only a full resync is gap-free."""


class DatabaseUnfit(WorldError):
    """The database has another schema version, an index of another shape, or denies a right: again is no use."""


class BrokerUnavailable(WorldError):
    """The message broker is away or does not take messages."""


class Overloaded(WorldError):
    """There is too much to do already; nothing was written. ``retry_after_s`` is when it may go, as far as is known."""

    def __init__(self, problem: str, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(problem)


class InvariantBroken(HaschedulerError):
    """Something that must hold does not: a defect of ours. The replica stops rather than guess."""
