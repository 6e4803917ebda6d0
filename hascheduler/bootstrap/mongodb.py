"""`bootstrap_mongodb`: asks the members, does the next action, and asks again, until nothing is left to do."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random

from hascheduler.bootstrap.inputs import Passwords
from hascheduler.bootstrap.member import MemberAccess, as_member, ask_member
from hascheduler.bootstrap.replica_set import Complete, Initiate, Wait, add_member, initiate, next_action
from hascheduler.bootstrap.users import ensure_users
from hascheduler.errors import StoreUnavailable

log = structlog.get_logger(__name__)

_PAUSE_S = (0.2, 1.0)
"""A random pause between these, so that concurrent runs do not collide for ever."""


@dataclass(frozen=True, slots=True)
class DatabasePlan:
    """``members`` sorted, as `parse_members` gives them; ``databases`` are those of the shards, the home's first."""

    members: Sequence[str]
    replica_set: str
    databases: Sequence[str]
    access: MemberAccess
    passwords: Passwords
    timeout_ms: int


async def bootstrap_mongodb(plan: DatabasePlan) -> None:
    """The replica set with all of its members, and its users; `StoreUnavailable` when it is not there in time.

    The users are made as soon as there is a primary, so that clients need not wait for a member that is late.
    """
    run = _BootstrapRun(plan)
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_random(*_PAUSE_S),
        stop=stop_after_delay(plan.timeout_ms / 1_000),
        reraise=True,
    ):
        with attempt:
            await run.round()


class _BootstrapRun:
    """Owner of what was logged and done, so that each state is logged once."""

    def __init__(self, plan: DatabasePlan) -> None:
        self._plan = plan
        self._logged = ""
        self._users_made = False

    async def round(self) -> None:
        """Returns when all is done; else `StoreUnavailable` with what is missing."""
        plan = self._plan
        answers = await asyncio.gather(*(ask_member(host, plan.access, plan.replica_set) for host in plan.members))
        match next_action(plan.members, [member for member in answers if member is not None]):
            case Wait(reason):
                raise self._missing(reason)
            case Initiate(host):
                async with as_member(host, plan.access) as client:
                    await initiate(client, plan.replica_set, host)
                log.info("replica_set_initiated", set=plan.replica_set, member=host)
                raise self._missing("the set has no primary")
            case Complete() as action:
                await self._complete(action)

    async def _complete(self, action: Complete) -> None:
        plan = self._plan
        async with as_member(action.primary, plan.access) as client:
            if not self._users_made:
                done = await ensure_users(client, action.primary, plan.access, plan.databases, plan.passwords)
                log.info("users_ready", **{name: change.value for name, change in done.items()})
                self._users_made = True
            for host in action.addable:
                await add_member(client, host)
                log.info("member_added", member=host)
        if action.awaited:
            raise self._missing(f"no answer yet from {', '.join(action.awaited)}")
        if action.others:
            log.warning("members_not_asked_for", members=list(action.others))
        log.info("replica_set_ready", set=plan.replica_set, primary=action.primary)

    def _missing(self, what: str) -> StoreUnavailable:
        if what != self._logged:
            log.info("waiting", reason=what)
            self._logged = what
        return StoreUnavailable(f"the replica set {self._plan.replica_set} is not there in time: {what}")
