"""Webhooks against a real server: what goes out, what comes back, and how an attempt fails."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.handlers.webhook import ALLOW_PRIVATE, BODY, URL, WebhookPayload, filled
from hascheduler.model.job import JobState
from hascheduler.model.message import MessageKind
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import load_handlers
from hascheduler.schema.noun import read_request
from tests.unit.processor.ready_made import error_of, make_job, result_of
from tests.unit.processor.receiver import Receiver, a_flood, a_trickle, answer, receiving, silence
from tests.unit.processor.world import staged, until

NOWHERE = "http://192.0.2.1/"


@pytest.fixture
async def receiver(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    monkeypatch.setenv(ALLOW_PRIVATE, "127.0.0.1/32")
    async with receiving() as receiver:
        yield receiver


async def test_the_body_goes_out_as_json_with_the_job_and_the_attempt(receiver: Receiver) -> None:
    receiver.answers["/hook?a=1"] = answer(201, b'{"ok": true}', Content_Type="application/json", X_Other="no")
    payload = {"url": receiver.url("/hook?a=1"), "headers": {"X-Team": "a"}, "body": {"n": [1, None, "ü"]}}
    result = await result_of("webhook", payload)
    assert result == {
        "status": 201,
        "headers": {"content-type": "application/json", "content-length": "12"},
        "body": '{"ok": true}',
        "truncated": False,
    }
    [request] = receiver.requests
    assert (request.method, request.path) == ("POST", "/hook?a=1")
    assert json.loads(request.body) == payload["body"]
    expected = {
        "host": f"127.0.0.1:{receiver.port}",
        "content-type": "application/json",
        "x-team": "a",
        "idempotency-key": "j1",
        "x-hascheduler-attempt": "1",
        "accept-encoding": "identity",
    }
    assert {name: request.headers.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    ("template", "body"),
    [
        ("", {"job": "j0", "error": 'no "disk"'}),
        ('{"text": ${payload.error|json}}', {"text": 'no "disk"'}),
    ],
)
async def test_a_payload_without_a_url_goes_where_the_operator_says(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, template: str, body: object
) -> None:
    monkeypatch.setenv(URL, receiver.url("/failed"))
    monkeypatch.setenv(BODY, template)
    await result_of("webhook", {"job": "j0", "error": 'no "disk"'})
    await result_of("webhook", {"url": receiver.url("/own")})
    assert [(request.path, request.body and json.loads(request.body)) for request in receiver.requests] == [
        ("/failed", body),
        ("/own", b""),
    ]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain $ { } $$ $x", "plain $ { } $$ $x"),
        ("$${job_id} ${job_id}", "${job_id} j1"),
        ("${attempt}/${definition}/${target}", "3/d/t"),
        ("${schedule} at ${nominal_at}", "tick at 2023-11-14T22:13:20.000Z"),
        ("${values.a.b.1} ${values.a}", 'y {"b":["x","y"]}'),
        ('{"name": ${values.quoted|json}}', '{"name": "a\\"b"}'),
        ("${values.nested}", "${job_id}"),
    ],
)
def test_a_template_is_filled_from_the_job(template: str, text: str) -> None:
    values = {"a": {"b": ["x", "y"]}, "quoted": 'a"b', "nested": "${job_id}"}
    payload = {"url": NOWHERE, "values": values}
    assert filled(template, make_job(payload, attempt=3, schedule="tick", nominal_ms=1_700_000_000_000)) == text


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("${who}", "${who} has no value"),
        ("${values.text", "is not closed"),
        ("${values.long}" * 5, "too long when filled"),
    ],
)
async def test_a_template_that_can_not_be_filled_sends_nothing(receiver: Receiver, template: str, problem: str) -> None:
    values = {"text": "x", "long": "x" * 1_000_000}
    error = await error_of("webhook", {"url": receiver.url(), "body_template": template, "values": values})
    assert error.startswith(f"InvalidInput: payload.body_template: {problem}") or problem in error
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("payload", "path", "problem"),
    [
        (None, "payload", "null is not an object"),
        ({"url": "ftp://x:secret@a/"}, "payload.url", "the URL has credentials in it"),
        ({"url": "ftp://a/?token=secret"}, "payload.url", "the scheme 'ftp' is not supported"),
        ({"url": "http://a\n/"}, "payload.url", "not a URL"),
        ({"url": NOWHERE, "method": "CONNECT"}, "payload.method", "'CONNECT' is unknown"),
        ({"url": NOWHERE, "headers": {"Host": "x"}}, "payload.headers", "the payload can't set Host"),
        ({"url": NOWHERE, "headers": {"idempotency-KEY": "x"}}, "payload.headers", "the payload can't set"),
        ({"url": NOWHERE, "headers": {"X-Hascheduler-Attempt": "9"}}, "payload.headers", "the payload can't set"),
        ({"url": NOWHERE, "headers": {"a: b": "x"}}, "payload.headers", "'a: b' is not the name"),
        ({"url": NOWHERE, "headers": {"a": "x\r\nb: c"}}, "payload.headers", "invalid in a header"),
        ({"url": NOWHERE, "follow_redirects": True}, "payload.follow_redirects", "true is unknown"),
    ],
)
def test_a_payload_that_makes_no_sense_is_refused_with_its_path(payload: Any, path: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_request(WebhookPayload, payload, ("payload",))
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "settings", "error"),
    [
        (404, {}, "WebhookRefused"),
        (302, {"follow_redirects": False}, "WebhookRefused"),
        (503, {}, "WebhookUndelivered"),
        (404, {"retry_on": [404]}, "WebhookUndelivered"),
        (503, {"retry_on": []}, "WebhookRefused"),
        (503, {"expect": [503], "retry_on": [503]}, None),
    ],
)
async def test_the_status_decides_how_it_ends(
    receiver: Receiver, status: int, settings: Any, error: str | None
) -> None:
    receiver.answers["/a?token=secret"] = answer(status, b"because\n\x1b[31m of this")
    payload = {"url": receiver.url("/a?token=secret"), **settings}
    if error is None:
        assert (await result_of("webhook", payload))["status"] == status
    else:
        said = await error_of("webhook", payload)
        assert said.startswith(f"{error}: {receiver.url('/a')} answered {status}: because [31m of this")


@pytest.mark.parametrize("slow", [silence, a_trickle])
async def test_the_time_out_is_for_all_of_the_request(receiver: Receiver, slow: Any) -> None:
    receiver.answers["/"] = slow
    error = await error_of("webhook", {"url": receiver.url(), "timeout": "300ms"})
    assert error == f"WebhookUndelivered: no answer from {receiver.url()} within 300ms"
    await until(receiver.hung_up.is_set)


async def test_of_a_response_without_end_only_the_beginning_is_read(receiver: Receiver) -> None:
    receiver.answers["/"] = a_flood
    result = await result_of("webhook", {"url": receiver.url()})
    assert result["truncated"] is True
    assert result["body"] == "x" * 65_536
    await until(receiver.hung_up.is_set)


async def test_a_cancelled_job_hangs_up(receiver: Receiver) -> None:
    receiver.answers["/"] = silence
    async with staged(load_handlers(["hascheduler.handlers.webhook"])) as stage:
        job = stage.world.dispatch("a", "webhook", {"url": receiver.url(), "timeout": "10m"})
        await until(lambda: len(receiver.requests) == 1)
        stage.world.tell(MessageKind.CANCEL, "a")
        assert await job.ended() == AttemptOutcome(JobState.CANCELLED)
        async with asyncio.timeout(20):
            await receiver.hung_up.wait()


async def test_no_proxy_and_no_credentials_are_taken_from_the_environment(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://192.0.2.1:9/")
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    await result_of("webhook", {"url": receiver.url()})
    assert "authorization" not in receiver.requests[0].headers
