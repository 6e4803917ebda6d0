"""Replicas that fail, are busy, or say no: what is repeated, where, and what the caller gets in the end."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from hascheduler.client import InvalidInput, Refused, Scheduler, Unavailable
from tests.tiers import spread
from tests.unit.client.faces import answered_by

A, B = "http://a:1", "http://b:2"
OK = {"answer": "cancelled"}
faces = pytest.mark.parametrize("kind", spread(["async", "sync"], check=1))


class Replicas:
    """Answers with what is next in ``script``, the last of it for ever, and keeps what it was asked."""

    def __init__(self, *script: httpx2.Response | httpx2.TransportError) -> None:
        self.script = list(script)
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, httpx2.TransportError):
            raise answer
        return httpx2.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def hosts(self) -> list[str]:
        return [request.url.host for request in self.asked]


def problem(status: int, detail: str, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, json={"type": "urn:x", "detail": detail}, headers=named)


@faces
@pytest.mark.parametrize(
    "first",
    [
        httpx2.ConnectError("refused"),
        httpx2.ReadTimeout("slow"),
        problem(503, "busy", Retry_After="0"),
    ],
)
async def test_what_one_replica_does_not_do_the_next_one_is_asked(
    kind: str, first: httpx2.Response | httpx2.TransportError
) -> None:
    replicas = Replicas(first, httpx2.Response(200, json=OK))
    face = answered_by(kind, replicas, A, B)
    assert await face.ask.cancel("job:1") == "cancelled"
    assert await face.ask.cancel("job:1") == "cancelled"
    assert replicas.hosts == ["a", "b", "b"]


@faces
async def test_what_makes_something_is_repeated_under_its_own_key(kind: str) -> None:
    replicas = Replicas(problem(422, "enough"))
    face = answered_by(kind, replicas, A)
    calls: list[Callable[..., Any]] = [
        lambda **key: face.ask.submit("log", wait=1.5, **key),
        lambda **key: face.ask.schedules.trigger("nightly", **key),
        lambda **key: face.ask.retry("job:1", **key),
        lambda **key: face.ask.retry_with_dependents("job:1", **key),
    ]
    for call in calls:
        for given in ({}, {"idempotency_key": "mine"}):
            replicas.script.insert(0, httpx2.ReadTimeout("slow"))
            with pytest.raises(Refused, match="422: enough"):
                await call(**given)
            first, second = [request.headers["idempotency-key"] for request in replicas.asked[-2:]]
            assert first == second
            assert (first == "mine") == bool(given)
    assert replicas.asked[0].url.params["wait"] == "1500ms"
    assert json.loads(replicas.asked[0].content) == {"definition": "log", "payload": None}


@faces
async def test_too_much_is_asked_again_when_it_may_and_refused_when_that_is_too_late(kind: str) -> None:
    replicas = Replicas(problem(429, "too many", Retry_After="0"), httpx2.Response(200, json=OK))
    assert await answered_by(kind, replicas, A, B).ask.cancel("job:1") == "cancelled"
    assert replicas.hosts == ["a", "a"]
    patient = Replicas(problem(429, "too many", Retry_After="60"))
    with pytest.raises(Refused, match="429: too many") as refused:
        await answered_by(kind, patient, A).ask.cancel("job:1")
    assert (refused.value.retry_after_s, len(patient.asked)) == (60, 1)


@faces
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (httpx2.ConnectError("refused"), r"http://a:1 does not answer \(refused\)"),
        (problem(503, "busy"), "http://a:1 answered 503: busy"),
    ],
)
async def test_patience_ends(kind: str, answer: httpx2.Response | httpx2.TransportError, said: str) -> None:
    replicas = Replicas(answer)
    with pytest.raises(Unavailable, match=said):
        await answered_by(kind, replicas, A, patience=0.3).ask.get("job:1")
    assert replicas.asked
    for wait in (None, 2):  # which a replica may hold back
        once = Replicas(answer)
        with pytest.raises(Unavailable, match=said):
            await answered_by(kind, once, A, patience=0).ask.get("job:1", wait=wait)
        assert len(once.asked) == 1
    with pytest.raises(Unavailable, match=said) as unavailable:
        await answered_by(kind, replicas, A, patience=0).ask.submit("log")
    assert unavailable.value.idempotency_key == replicas.asked[-1].headers["idempotency-key"], "to repeat it under"


@faces
@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (problem(401, "no token"), Refused, "401: no token"),
        (problem(500, "a defect"), Unavailable, "answered 500: a defect"),
        (httpx2.Response(404, text="nginx"), Unavailable, r"answered 404: \?"),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), Unavailable, "CERTIFICATE_VERIFY_FAILED"),
        (httpx2.Response(200, text="<html>"), Unavailable, "answered 200"),
        (httpx2.Response(200, json={"id": "job:1"}), Unavailable, "sent an invalid answer"),
    ],
)
async def test_what_would_be_no_better_is_not_repeated(
    kind: str, answer: httpx2.Response | httpx2.TransportError, error: type[Exception], said: str
) -> None:
    replicas = Replicas(answer)
    with pytest.raises(error, match=said):
        await answered_by(kind, replicas, A).ask.get("job:1")
    assert len(replicas.asked) == 1


@faces
async def test_a_token_is_shown_and_never_told(kind: str) -> None:
    replicas = Replicas(problem(401, "no such token"))
    face = answered_by(kind, replicas, A, token="hsk_abc")
    with pytest.raises(Refused) as refused:
        await face.ask.get("job:1")
    assert replicas.asked[0].headers["authorization"] == "Bearer hsk_abc"
    down = answered_by(kind, Replicas(problem(500, "?")), "http://user:secret@a:1")
    with pytest.raises(Unavailable) as unavailable:
        await down.ask.get("job:1")
    assert "hsk_abc" not in str(refused.value)
    assert "secret" not in str(unavailable.value)


@pytest.mark.parametrize("urls", [(), ("nowhere",), ("ftp://a",), ("http://",), ("http://a:many",)])
def test_what_is_no_url_is_refused(urls: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="urls: "):
        Scheduler(*urls)


@pytest.mark.parametrize("token", ["", "hsk_abc\n", "hsk_é", "hsk abc"])
def test_what_is_no_token_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(InvalidInput, match="token: is not a valid token") as refused:
        Scheduler(A, token=token)
    assert "abc" not in str(refused.value)
