"""The API is asked of whichever replica answers, and a takeover is measured by what a living one sees."""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest

from hascheduler.client import AsyncScheduler
from hascheduler.demo.environment import CurrentLeader, ReplicaApi, measure_takeover
from hascheduler.errors import CallerError, StoreUnavailable
from hascheduler.testing.virtual_loop import VirtualLoop

_URLS = {"a": "http://a", "b": "http://b", "c": "http://c"}


def _replicas(answers: dict[str, httpx2.Response | Exception], asked: list[str]) -> ReplicaApi:
    """Each host gives its one answer; one that has none can't be reached."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        given = answers.get(request.url.host, httpx2.ConnectError("nobody there"))
        if isinstance(given, Exception):
            raise given
        return given

    return _api(answer)


def _api(answer: Callable[[httpx2.Request], httpx2.Response]) -> ReplicaApi:
    http = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    return ReplicaApi(lambda url: AsyncScheduler(url, patience=0, http=http), lambda: _URLS)


def _status(scheduler: AsyncScheduler) -> Awaitable[Any]:
    return scheduler.cluster.status()


def _refused(status: int) -> httpx2.Response:
    return httpx2.Response(status, json={"type": "urn:x", "detail": "no"})


async def test_the_next_one_is_asked_when_one_is_away_or_in_trouble() -> None:
    asked: list[str] = []
    api = _replicas({"b": httpx2.Response(503), "c": httpx2.Response(200, json={"ready": True})}, asked)
    assert await api.ask(_status) == {"ready": True}
    assert asked == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (_refused(401), CallerError),
        (_refused(403), CallerError),
        (_refused(404), StoreUnavailable),
        (_refused(429), StoreUnavailable),
        (httpx2.Response(500, text="no"), StoreUnavailable),
        (httpx2.Response(404, text="no"), StoreUnavailable),
        (httpx2.Response(200, text="no"), StoreUnavailable),
        (httpx2.Response(200, json=[]), StoreUnavailable),
        (httpx2.ReadTimeout("slow"), StoreUnavailable),
    ],
)
async def test_what_is_no_answer_is_said(given: httpx2.Response | Exception, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"http://[ac] (answered|does not answer)"):
        await _replicas(dict.fromkeys("abc", given), []).ask(_status)


async def test_a_schedule_that_is_there_already_was_made_by_an_answer_that_got_lost() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return _refused(409) if request.method == "POST" else httpx2.Response(200, json={"name": "tick"})

    api = _api(answer)
    assert await api.create({"name": "tick"}) == {"name": "tick"}


def test_a_takeover_lasts_from_the_last_entry_of_the_old_term_to_a_decision_of_the_next() -> None:
    """Seen at 0, 20, 40 … ms: the old leader decides for 40 ms more, then there is no leader, then term 8 begins."""
    seen = [(7, 50), (7, 51), (7, 52), (7, 52), (None, 52), (8, 52), (8, 53), (8, 54), (8, 55)]
    answers: Iterator[tuple[int | None, int]] = iter(seen)

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/v1/processors":
            return httpx2.Response(200, json={"items": []})
        term, seq = next(answers)
        leader = None if term is None else {"holder": f"x.{term}", "term": term}
        return httpx2.Response(200, content=json.dumps({"ready": True, "leader": leader, "journal_seq": seq}))

    async def measured() -> int:
        return await measure_takeover(_api(answer), CurrentLeader("x", {"": 7}), "")

    loop = VirtualLoop()
    try:
        took_ms = loop.run_until_complete(measured())
    finally:
        loop.close()
    assert took_ms == 100, "from the entry seen at 40 ms to the decision seen at 140 ms"
    assert next(answers) == (8, 55)
