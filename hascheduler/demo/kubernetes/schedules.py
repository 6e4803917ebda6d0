"""The demo's schedules in somebody's cluster: made under names of this run, and gone at the end whatever ends it."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from hascheduler.demo.kubernetes.patience import once
from hascheduler.demo.replicas import Replicas
from hascheduler.errors import CallerError, StoreUnavailable, WorldError
from hascheduler.model.instants import WallMs, parse_instant

_PATIENCE_S = 30.0
_EVERY_S = 0.3


class Schedules:
    """Owner of the names that were asked for, and of how far the cluster's clock is ahead of this machine's."""

    def __init__(self, api: Replicas, say: Callable[[str], None]) -> None:
        self._api = api
        self._say = say
        self._asked_for: list[str] = []
        self._ahead_ms = 0

    def wall_ms(self) -> WallMs:
        """The cluster's clock, right to within half a request."""
        return WallMs(_here_ms() + self._ahead_ms)

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        # Noted before it is asked for: an answer that got lost leaves a schedule behind too.
        self._asked_for.append(body["name"])

        async def ask() -> tuple[int, Mapping[str, Any], int]:
            before_ms = _here_ms()
            return before_ms, await self._api.create(body), _here_ms()

        what = f"the schedule {body['name']} is made"
        before_ms, created, after_ms = await once(ask, what, patience_s=_PATIENCE_S, every_s=_EVERY_S)
        self._ahead_ms = parse_instant(created["created_at"]) - (before_ms + after_ms) // 2
        return created

    async def read_clock(self, name: str) -> None:
        """Know the cluster's clock before anything depends on it: from a schedule that never fires."""
        await self.create({"name": name, "trigger": _NEVER, "job": {"definition": "log"}})

    async def delete_all(self) -> None:
        """What can't be deleted is named, with what would do it."""
        if self._asked_for:
            self._say(f"deleting the schedules of this run ({len(self._asked_for)})")
        try:
            while self._asked_for:
                name = self._asked_for[-1]
                await once(lambda: self._deleted(name), f"{name} is deleted", patience_s=_PATIENCE_S, every_s=_EVERY_S)  # noqa: B023  # awaited within the turn
                self._asked_for.pop()
        except (WorldError, CallerError) as error:
            self._say(
                f"left behind, to be deleted with `hascheduler schedule delete`: {', '.join(self._asked_for)} ({error})"
            )

    async def _deleted(self, name: str) -> bool:
        answer = await self._api.ask("DELETE", f"/v1/schedules/{name}")
        if answer.status_code not in (httpx.codes.NO_CONTENT, httpx.codes.NOT_FOUND):
            raise StoreUnavailable(f"DELETE was answered {answer.status_code}")
        return True


_NEVER = {"type": "once", "at": "2098-01-01T00:00:00Z"}


def _here_ms() -> int:
    return time.time_ns() // 1_000_000
