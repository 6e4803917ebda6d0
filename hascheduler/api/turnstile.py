"""Behind the door, before the routes: charges each request in flight to who asks.

The door settles identity without waiting for anything, so nothing is held by a request that is not charged yet.
Refusals here are counted, and leave no audit record: they change nothing, and a flood of them must write nothing.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from hascheduler.api.audit_note import AuditNote
from hascheduler.api.connection import connection_of
from hascheduler.api.pools import UNCOUNTED, Pools, in_flight, refusal, take, use_of
from hascheduler.api.problems import problem
from hascheduler.api.shares import Reason, Refused, Slot

_CLOSE = {"Connection": "close"}


class Turnstile:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in UNCOUNTED:
            await self._app(scope, receive, send)
            return
        outcome = _admitted(scope)
        if isinstance(outcome, Refused):
            scope.setdefault("state", {})["audit_note"] = AuditNote(unaudited=True)
            refused = refusal(outcome)
            # What is left of the body is nothing that anybody wants to read.
            headers = {**(refused.headers or {}), **_CLOSE}
            answer = problem(refused.status_code, refused.kind, refused.detail, headers=headers)
            await answer(scope, receive, send)
            return
        with in_flight(outcome, scope):
            await self._app(scope, receive, send)


def _admitted(scope: Scope) -> Slot | Refused:
    services = scope["app"].state.services
    pools: Pools = services.pools
    connection = connection_of(scope)
    if connection is not None and connection.is_reserved and not use_of(scope).privileged:
        services.metrics.crowded_out("connections", Reason.FULL.value)
        return Refused("connections", Reason.FULL, 1)
    return take(pools.in_flight, scope)
