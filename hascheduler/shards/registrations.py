"""Chooses the shard for a registering worker over HTTP, and lets idle workers go if another shard needs them.

Each shard is asked by its public routes how many jobs wait and who runs such jobs; the answers are kept for a second.
Workers that were sent there since count as free, so that workers that arrive together are spread. A shard that does not
answer is left out. The id that a shard gives a worker names the shard, so that all other requests of the worker find it
(`hascheduler.model.processor`). A worker that is let go is deregistered, and registers again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from random import random
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson
from starlette.types import Scope

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.work.schemas import DEFINITIONS_MAX, SLOTS_MAX
from hascheduler.model.processor import ANY_DEFINITION, overlap
from hascheduler.model.token import ALL_TENANTS, Role
from hascheduler.shards.answers import answer_of, own_request, replayed
from hascheduler.shards.peers import Place, ask_all

_ASKS = Caller(Role.VIEWER, ALL_TENANTS, "registrations")
_PROCESSORS, _COUNTS = "/v1/processors", "/v1/jobs:counts"
_FRESH_S = 1.0
IDLE_S = 10.0
_KEPT_MAX = 10_000
_COUNTED_MAX = 8
"""If a worker has more definitions, all waiting jobs are counted."""


class _Lack(NamedTuple):
    """How much a shard lacks workers: jobs that nobody runs, then jobs without a slot, then few slots."""

    unserved: int
    unmet: int
    fewness: int


class Registrations:
    """Owner of the shards' last answers, of the slots of workers sent to them since, and of since when workers idle.

    Answers are kept for a second; idle times are as seen here.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._answers: dict[tuple[int, str], tuple[float, Any]] = {}
        self._sent: dict[int, tuple[float, int]] = {}
        self._idle_since_s: dict[str, float] = {}
        self._checked_at_s = -_FRESH_S

    async def shard_for(self, body: Any, scope: Scope) -> int:
        """Return the index of the shard that most lacks a worker with this registration."""
        definitions = body.get("definitions") if isinstance(body, dict) else None
        if not isinstance(definitions, list) or not all(isinstance(each, str) for each in definitions):
            return 0  # the home refuses it
        lacks = await self._lacks(definitions[:DEFINITIONS_MAX], scope)
        index = max(lacks, key=lambda index: (*lacks[index], random()), default=0)  # noqa: S311  # no secret
        slots = body.get("slots")
        slots = slots if isinstance(slots, int) and 0 < slots <= SLOTS_MAX else 1
        self._sent[index] = asyncio.get_running_loop().time(), self._sent_to(index) + slots
        return index

    def _sent_to(self, index: int) -> int:
        """Return how many slots workers sent there have, each sent within a second of the next one."""
        at_s, slots = self._sent.get(index, (-_FRESH_S, 0))
        return slots if asyncio.get_running_loop().time() - at_s < _FRESH_S else 0

    async def released(self, processor: str, index: int, scope: Scope, *, is_idle: bool) -> bool:
        """Return True if that shard's idle worker was deregistered because another shard lacks it.

        The worker's request shows whether it is idle. At most one worker a second is checked.
        """
        now_s = asyncio.get_running_loop().time()
        if not is_idle:
            self._idle_since_s.pop(processor, None)
            return False
        if len(self._idle_since_s) >= _KEPT_MAX:
            self._idle_since_s.clear()
        since_s = self._idle_since_s.setdefault(processor, now_s)
        if now_s - since_s < IDLE_S or now_s - self._checked_at_s < _FRESH_S:
            return False
        self._checked_at_s = now_s
        there = await self._get(index, _PROCESSORS, "", scope) or {"items": ()}
        known = next((item for item in there["items"] if item["id"] == processor), None)
        if known is None or known["occupied"]:
            return False
        lacks = await self._lacks(known["definitions"], scope)
        if index not in lacks or lacks[index].unmet or not any(lack.unmet for lack in lacks.values()):
            return False
        asked = own_request(scope, "DELETE", f"/v1/work/processors/{processor}")
        return (await answer_of(self._places[index], asked, replayed())).status < HTTPStatus.BAD_REQUEST

    async def _lacks(self, definitions: Sequence[str], scope: Scope) -> Mapping[int, _Lack]:
        named = () if ANY_DEFINITION in definitions or len(definitions) > _COUNTED_MAX else definitions
        queries = [urlencode({"state": "pending", **each}) for each in ([{"definition": one} for one in named] or [{}])]

        async def lack(index: int) -> _Lack | None:
            asked = [(_PROCESSORS, ""), *((_COUNTS, query) for query in queries)]
            there, *counts = await ask_all(self._get(index, *each, scope) for each in asked)
            if there is None or None in counts:
                return None
            wanted = frozenset(definitions)
            servers = [one for one in there["items"] if one["alive"] and not one["draining"]]
            servers = [one for one in servers if overlap(frozenset(one["definitions"]), wanted)]
            waiting = sum(each["pending"] for each in counts)
            sent = self._sent_to(index)
            free = sum(max(one["slots"] - one["occupied"], 0) for one in servers) + sent
            slots = sum(one["slots"] for one in servers) + sent
            return _Lack(0 if servers or sent else waiting, max(waiting - free, 0), -slots)

        found = await ask_all(lack(index) for index in range(len(self._places)))
        return {index: each for index, each in enumerate(found) if each is not None}

    async def _get(self, index: int, path: str, query: str, scope: Scope) -> Any:
        """Return the shard's answer, at most a second old; None if it does not answer."""
        key, now_s = (index, f"{path}?{query}"), asyncio.get_running_loop().time()
        if key not in self._answers or now_s - self._answers[key][0] >= _FRESH_S:
            asked = own_request(scope, "GET", path, query, caller=_ASKS)
            answer = await answer_of(self._places[index], asked, replayed(), _FRESH_S)
            if len(self._answers) >= _KEPT_MAX:
                self._answers.clear()
            self._answers[key] = now_s, orjson.loads(answer.body) if answer.status == HTTPStatus.OK else None
        return self._answers[key][1]
