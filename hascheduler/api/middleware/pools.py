"""The pools of one replica, and the parties to which each request is charged.

==================  =====  =======  ====================================================================
pool                total  reserve  a unit is
==================  =====  =======  ====================================================================
``in_flight``         320       64  a request, from its identification to its answer
``waits``           1,000        0  who waits for the end of a job; over the share they are answered at once
``fetches``           960        0  a worker's fetch that waits for work
``followers``         100       10  a stream of events
``viewers``           200       20  a page of the dashboard that is kept up to date
``recordings``          4        0  a recording of the leader
 ``changes``             3        1  a request that changes all jobs or schedules that match
``forwarded``         512        0  a request that another replica answers
``large_bodies``   32 MiB        0  a byte of a body that may be large, as declared
==================  =====  =======  ====================================================================

A request that is held open returns its place in flight: a few hundred waiting requests must not keep out those that
would be answered at once. Each pool is shared as `hascheduler.api.http.shares` says, by token and by address; without a
token, by address. 429 ``share-used-up`` says that the caller's share is used up, 503 ``too-busy`` that the pool is.

The reserve is for the callers that keep the system going: tokens for all tenants that may operate, administer or work,
and ``/v1/work`` where no tokens are required. Probes and scrapes are not counted at all, so that a busy replica does
not look dead, and can show how busy it is. Connections have a pool of their own kind:
`hascheduler.api.http.connection_table`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Scope

from hascheduler.api.http.connection import connection_of
from hascheduler.api.http.problems import ProblemError, problem
from hascheduler.api.http.shares import (
    Party,
    Pool,
    PoolRefusal,
    PoolRequest,
    RefusalReason,
    Slot,
    address_party,
    token_party,
)
from hascheduler.api.middleware.auth import EDGE, Caller
from hascheduler.errors import Overloaded
from hascheduler.model.token import Role
from hascheduler.telemetry.metrics_http import HttpMetrics

UNCOUNTED = frozenset({"/livez", "/readyz", "/leaderz", "/metrics"})
IN_FLIGHT = "in_flight"
IN_FLIGHT_MAX = 320
IN_FLIGHT_RESERVE = 64
WAITS_MAX = 1_000
FETCHES_MAX = 960
FOLLOWERS_MAX = 100
FOLLOWERS_RESERVE = 10
VIEWERS_MAX = 200
VIEWERS_RESERVE = 20
RECORDINGS_MAX = 4
CHANGES_MAX = 3
CHANGES_RESERVE = 1
FORWARDED_MAX = 512
LARGE_BODIES_BYTES_MAX = 32 * 1024 * 1024
_SOON_S = 1
_LATER_S = 5
_PRIVILEGED = frozenset({Role.OPERATOR, Role.ADMIN, Role.WORKER})
_WORK = "/v1/work/"
_SLOT = "slot_in_flight"
_SLOTS = "slots"
"""All that a request has taken."""
CHARGED = "charged_as_a_whole"
"""The names of pools in which a request that is answered in parts holds a slot: these are not charged again."""
_WORDS = {
    IN_FLIGHT: "requests in flight",
    "waits": "waits for a job",
    "fetches": "fetches that wait for work",
    "followers": "streams of events",
    "viewers": "pages that are kept up to date",
    "recordings": "recordings",
    "changes": "changes of all that match",
    "forwarded": "requests that other replicas answer",
    "large_bodies": "large bodies",
    "connections": "connections",
}


@dataclass(slots=True)
class Pools:
    """Owner of all pools of the replica."""

    in_flight: Pool = field(default_factory=lambda: Pool(IN_FLIGHT, IN_FLIGHT_MAX, IN_FLIGHT_RESERVE))
    waits: Pool = field(default_factory=lambda: Pool("waits", WAITS_MAX))
    fetches: Pool = field(default_factory=lambda: Pool("fetches", FETCHES_MAX))
    followers: Pool = field(
        default_factory=lambda: Pool("followers", FOLLOWERS_MAX, FOLLOWERS_RESERVE, retry_after_s=_LATER_S)
    )
    viewers: Pool = field(default_factory=lambda: Pool("viewers", VIEWERS_MAX, VIEWERS_RESERVE, retry_after_s=_LATER_S))
    recordings: Pool = field(default_factory=lambda: Pool("recordings", RECORDINGS_MAX, retry_after_s=_LATER_S))
    changes: Pool = field(default_factory=lambda: Pool("changes", CHANGES_MAX, CHANGES_RESERVE))
    forwarded: Pool = field(default_factory=lambda: Pool("forwarded", FORWARDED_MAX))
    large_bodies: Pool = field(
        default_factory=lambda: Pool("large_bodies", LARGE_BODIES_BYTES_MAX, retry_after_s=_SOON_S)
    )


def pool_request_of(scope: Scope) -> PoolRequest:
    """The parties to which a request is charged that `hascheduler.api.middleware.auth` has let through."""
    caller = scope.get("state", {}).get("caller")
    client = scope.get("client")
    address = address_party(client[0] if client else "")
    if not isinstance(caller, Caller) or caller.id is None:
        return PoolRequest((address,), privileged=caller is not None and scope["path"].startswith(_WORK))
    # The sessions of one token are that token: a login must not multiply its share.
    parties: tuple[Party, ...] = (token_party(caller.session_of or caller.id), address)
    return PoolRequest(parties, privileged=caller.only is None and caller.role in _PRIVILEGED)


def try_take(pool: Pool, scope: Scope, units: int = 1) -> Slot | PoolRefusal:
    """A slot for the request, or a refusal, which is counted. At the latest it is given back when the request ends."""
    if pool.name in scope.get("state", {}).get(CHARGED, ()):
        return Slot(pool, (), 0)
    outcome = pool.admit(pool_request_of(scope), units)
    if isinstance(outcome, PoolRefusal):
        metrics: HttpMetrics = scope["state"][EDGE].metrics
        metrics.crowded_out(pool.name, outcome.reason.value)
    else:
        scope["state"].setdefault(_SLOTS, []).append(outcome)
    return outcome


def take(pool: Pool, scope: Scope, units: int = 1) -> Slot:
    """As `try_take`; raises 429 or 503."""
    outcome = try_take(pool, scope, units)
    if isinstance(outcome, PoolRefusal):
        raise problem_of(outcome)
    return outcome


@contextmanager
def in_flight(slot: Slot, scope: Scope) -> Iterator[None]:
    """The request holds ``slot`` until its answer, or until it is held open. However it ends, all that it has taken is
    given back: an answer that was to hold a slot may never have begun."""
    scope["state"][_SLOT] = slot
    try:
        yield
    finally:
        for taken in scope["state"].pop(_SLOTS, ()):
            taken.release()


@contextmanager
def held_open(slot: Slot, scope: Scope) -> Iterator[None]:
    """The request waits in ``slot``, and has returned its place in flight."""
    place = scope.get("state", {}).get(_SLOT)
    if isinstance(place, Slot):
        place.release()
    with slot:
        yield


def is_held_open(scope: Scope) -> bool:
    """Return whether the request has returned its place in flight: what it was to write is written."""
    place = scope.get("state", {}).get(_SLOT)
    return isinstance(place, Slot) and place.is_released


def problem_of(refused: PoolRefusal) -> ProblemError:
    headers = {"Retry-After": str(refused.retry_after_s)}
    words = _WORDS[refused.pool]
    if refused.reason is RefusalReason.FULL:
        return ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, "too-busy", f"there is no room for more {words} now", headers=headers
        )
    whose = "token" if refused.reason is RefusalReason.TOKEN_SHARE else "address"
    detail = f"this {whose} holds its whole share of the {words}; end some, or come again"
    return ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "share-used-up", detail, headers=headers)


TurnedAway = Callable[[str | None, int], Overloaded | None]
"""As `hascheduler.ports.Admission.turned_away`."""
_CLOSE_CONNECTION = {"Connection": "close"}
_SUBMITS = frozenset({"/v1/jobs", "/v1/jobs:batch"})
_SHORT_BYTES = 8 * 1024
_LENGTH_DIGITS_MAX = 9
_LENGTH_UNKNOWN = 64 * 1024


def answer_to(refusal: PoolRefusal) -> Response:
    """For a request that holds no place in flight."""
    refused = problem_of(refusal)
    # The rest of the body will not be read.
    headers = {**(refused.headers or {}), **_CLOSE_CONNECTION}
    return problem(refused.status_code, refused.kind, refused.detail, headers=headers)


def overload_of(scope: Scope, turned_away: TurnedAway) -> Response | None:
    """503 for a submit that would be refused once it is read, of a caller who is identified.

    What is short enough to have come with its head is passed
    over by the connection, which stays.
    """
    if scope["method"] != "POST" or scope["path"] not in _SUBMITS:
        return None
    caller = scope.get("state", {}).get("caller")
    if not isinstance(caller, Caller):
        return None
    header = dict(scope["headers"]).get(b"content-length", b"")
    length = int(header) if header.isdigit() and len(header) <= _LENGTH_DIGITS_MAX else _LENGTH_UNKNOWN
    overloaded = turned_away(caller.only, length)
    if overloaded is None:
        return None
    headers = {"Retry-After": str(overloaded.retry_after_s)}
    if length > _SHORT_BYTES:
        headers |= _CLOSE_CONNECTION
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", str(overloaded), headers=headers)


def admitted(scope: Scope) -> Slot | PoolRefusal:
    """The place in flight of a request, charged to its caller: 429 or 503 where the share or the pool is used up."""
    services = scope["state"][EDGE]
    pools: Pools = services.pools
    connection = connection_of(scope)
    if connection is not None and connection.is_reserved and not pool_request_of(scope).privileged:
        services.metrics.crowded_out("connections", RefusalReason.FULL.value)
        return PoolRefusal("connections", RefusalReason.FULL, 1)
    return try_take(pools.in_flight, scope)
