"""Calls a replica through the SDK, and translates its failures to errors of the command line.

A refusal (4xx with a problem) becomes a `CallerError`, with the fields that are wrong. Any other failure becomes a
`WorldError`: nothing listens, the answer is too late, it is not a replica, or the replica can't reach its database.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hascheduler.errors import CallerError, Conflict, InvalidInput, WorldError

if TYPE_CHECKING:
    from hascheduler import client
    from hascheduler.client import Problem, Refused, Unavailable
    from hascheduler.client.synchronous import named
    from hascheduler.contexts import Access

    Job: TypeAlias = client.Job
    NamedApi: TypeAlias = named.NamedApi[Any]
    Scheduler: TypeAlias = client.Scheduler
else:  # the SDK imports an HTTP client, which no help needs
    Job = NamedApi = Scheduler = Any

T = TypeVar("T")
U = TypeVar("U")

_ANSWER_S = 5.0
_NO_REPLICA = "does not answer like a replica"


class RevisionChanged(Conflict):
    """The resource has another revision than the one that was read."""


@contextmanager
def replica(access: "Access", unanswered: str = _NO_REPLICA) -> Iterator[Scheduler]:
    """Yield a client that does not retry; raise `InvalidInput`, which says where it was found, if a URL is none.

    `as_cli_errors` translates the client's errors inside the block; ``unanswered`` ends the text of a failed request.
    """
    from hascheduler.client import Scheduler

    try:
        scheduler = Scheduler(access.url, token=access.token(), tls=access.tls(), patience=0, answer_timeout=_ANSWER_S)
    except InvalidInput as error:
        raise access.named(error) from None
    with scheduler, as_cli_errors(unanswered):
        yield scheduler


@contextmanager
def as_cli_errors(unanswered: str = _NO_REPLICA) -> Iterator[None]:
    """Translate the client's failures to a `CallerError` or a `WorldError`."""
    from hascheduler.client import Refused, Unavailable

    try:
        yield
    except (Refused, Unavailable) as failure:
        raise _cli_error(failure, unanswered) from None


def be_patient(scheduler: Scheduler, patience_s: float) -> None:
    """Let the client retry each further request for that long."""
    scheduler._asker.patience_s = patience_s


def named_api(scheduler: Scheduler, kind: str) -> NamedApi:
    collection: Any = f"{kind}s"
    return scheduler.documents(collection)


def unless_unreadable(ask: Callable[[], T], unreadable: U) -> T | U:
    """Return what ``ask`` returns, or ``unreadable`` if the stored document can't be read.

    The caller can replace or delete an unreadable document.
    """
    from hascheduler.client import Refused

    try:
        return ask()
    except Refused as refused:
        if not refused.problem.type.endswith(":unreadable-document"):
            raise
        return unreadable


def _cli_error(failure: "Refused | Unavailable", unanswered: str) -> CallerError | WorldError:
    from hascheduler.client import Problem, Unavailable

    where = failure.replica
    if isinstance(failure, Unavailable) and failure.cause is not None:
        return _unreached(where, type(failure.cause).__name__, str(failure.cause), unanswered)
    problem = failure.problem or Problem()
    detail = problem.detail
    match failure.status:
        case 404 if problem.type.endswith(":not-found"):
            return CallerError(detail)
        case 409:
            return Conflict(detail)
        case 401 if detail:
            return CallerError(f"{where}: {detail}; set HASCHEDULER_TOKEN")
        case 403 if detail:
            return CallerError(detail)
        case 412:
            return RevisionChanged(
                f"{detail}; it was changed by another request: check it and retry" if detail else "changed"
            )
        case 400 | 408 | 413 | 415 | 422 | 428 if detail:
            return _invalid(problem)
        case status:
            return WorldError(f"{where} answered {status}: {detail or 'not a replica'}")


def _unreached(where: str, kind: str, reason: str, unanswered: str) -> CallerError | WorldError:
    if kind != "ConnectError":
        return WorldError(f"{where} {unanswered} ({kind})")
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return CallerError(f"{where} is not trusted ({reason}); --ca-file sets the trusted authorities")
    if "[SSL" in reason:
        return WorldError(f"{where} cannot agree on HTTPS with this machine ({reason})")
    if "[Errno -" in reason:  # the resolver's numbers are negative, those of the network positive
        return WorldError(f"{where}: no address for this host; set --url or HASCHEDULER_URL to a replica")
    return WorldError(f"nothing answers at {where}; is a replica running there?")


def _invalid(problem: "Problem") -> CallerError:
    errors = problem.errors
    if len(errors) == 1:
        one = errors[0]
        return InvalidInput(tuple(one.path.split(".")) if one.path else ("body",), one.problem, one.expected)
    lines = [f"{one.path}: {one.problem}; expected {one.expected}" for one in errors]
    return CallerError(" | ".join(lines) or problem.detail)
