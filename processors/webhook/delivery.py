"""One attempt: the request, its redirects, and the judgement of what was answered."""

import asyncio
from typing import Any
from urllib.parse import quote

import httpx
import orjson
from pydantic_core import PydanticCustomError

from hascheduler.errors import CallerError, InvalidInput, WorldError
from hascheduler.model.values.durations import format_duration
from hascheduler.processor import JobContext, RetryLater
from processors.texts import beginning, one_line
from processors.webhook.destinations import Destinations
from processors.webhook.payload import WebhookPayload, destination
from processors.webhook.pinned import PinnedTransport, Resolve, resolved
from processors.webhook.template import filled

BODY_BYTES_MAX = 64 * 1024
REDIRECTS_MAX = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS_KEPT = ("content-type", "content-encoding", "content-length", "date", "etag", "location", "retry-after")
_HEADER_KEPT_LENGTH_MAX = 1_024
_RETRY_AFTER_S_MAX = 86_400
# A charset names any codec of Python's, and some of those are slow or no charset at all.
_CHARSETS = frozenset(
    {"utf-8", "us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252", "utf-16", "shift_jis", "gb18030"}
)


class WebhookRefused(CallerError):
    """The receiver's answer is final."""


class WebhookUndelivered(WorldError):
    """There was no answer, or one that says to come again."""


async def deliver(
    payload: WebhookPayload, job: JobContext, destinations: Destinations, resolve: Resolve = resolved
) -> dict[str, Any]:
    """What the receiver answered, if it is a success; else one of the errors above, or an `InvalidInput`."""
    request = _request(payload, job)
    try:
        async with asyncio.timeout(payload.timeout / 1000), PinnedTransport(destinations, resolve) as transport:
            response = await _answered(transport, request, payload)
            try:
                body, truncated = await _read(response)
            finally:
                await response.aclose()
    except TimeoutError:
        raise WebhookUndelivered(f"no answer from {_place(request.url)} within {_span(payload)}") from None
    except (httpx.LocalProtocolError, httpx.InvalidURL) as error:
        raise InvalidInput(("payload",), f"the request can't be sent: {one_line(str(error))}") from None
    except (httpx.TransportError, OSError) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise WebhookUndelivered(f"no answer from {_place(request.url)}: {reason}") from None
    return _judged(payload, response, body, truncated)


def _request(payload: WebhookPayload, job: JobContext) -> httpx.Request:
    # A redirect keeps these: they are the receiver's means to have its effect once.
    headers = {"Idempotency-Key": quote(job.idempotency_key, safe=":._~/-"), "X-Hascheduler-Attempt": f"{job.attempt}"}
    # A compressed body is not wanted: a small one may hold a huge one.
    headers |= {"User-Agent": "hascheduler-webhook", "Accept": "*/*", "Accept-Encoding": "identity"}
    content: bytes | None = None
    if payload.has_json_body:
        content = orjson.dumps(payload.body, default=str)
        headers["Content-Type"] = "application/json"
    elif payload.body_template is not None:
        content = filled(payload.body_template, job).encode()
        headers["Content-Type"] = "text/plain; charset=utf-8"
    merged = httpx.Headers(headers)
    merged.update(payload.headers)
    return httpx.Request(payload.method, payload.url, headers=merged, content=content)


async def _answered(transport: PinnedTransport, request: httpx.Request, payload: WebhookPayload) -> httpx.Response:
    """The answer to the last of the redirects that are followed; its body is still to be read."""
    redirects = 0
    while True:
        response = await transport.handle_async_request(request)
        if not (payload.follow_redirects and response.status_code in _REDIRECTS and "location" in response.headers):
            return response
        await response.aclose()
        redirects += 1
        if redirects > REDIRECTS_MAX:
            raise WebhookRefused(f"more than {REDIRECTS_MAX} redirects, the last from {_place(request.url)}")
        request = _redirected(request, response, payload)


def _redirected(request: httpx.Request, response: httpx.Response, payload: WebhookPayload) -> httpx.Request:
    """The next request, as RFC 9110 section 15.4 and all browsers have it.

    The payload's headers, which may be credentials, are for the place that it names and go nowhere else.
    """
    came_from = _place(request.url)
    try:
        url = destination(str(request.url.join(response.headers["location"])))
    except (httpx.InvalidURL, PydanticCustomError) as error:
        raise WebhookRefused(f"{came_from} redirects to what can't be followed: {one_line(str(error))}") from None
    if request.url.scheme == "https" and url.scheme == "http":
        raise WebhookRefused(f"{came_from} redirects to {_place(url)}, which is not encrypted")
    method, content = request.method, request.content
    headers = httpx.Headers(request.headers)
    del headers["Host"]
    headers.pop("Content-Length", None)
    if (response.status_code == 303 and method != "HEAD") or (response.status_code in (301, 302) and method == "POST"):
        method, content = "GET", b""
        headers.pop("Content-Type", None)
    if _origin(url) != _origin(request.url):
        for name in payload.headers:
            if name.lower() != "content-type":
                headers.pop(name, None)
    return httpx.Request(method, url, headers=headers, content=content or None)


async def _read(response: httpx.Response) -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            return bytes(body[:BODY_BYTES_MAX]), True
    return bytes(body), False


def _judged(payload: WebhookPayload, response: httpx.Response, body: bytes, truncated: bool) -> dict[str, Any]:
    status, text = response.status_code, _text(response, body)
    if status in payload.expect:
        kept = beginning(text)
        headers = {
            name: response.headers[name][:_HEADER_KEPT_LENGTH_MAX] for name in _HEADERS_KEPT if name in response.headers
        }
        return {"status": status, "headers": headers, "body": kept, "truncated": truncated or kept != text}
    said = one_line(text)
    answered = f"{_place(httpx.URL(payload.url))} answered {status}" + (f": {said}" if said else "")
    if status in payload.retry_on:
        after = response.headers.get("Retry-After", "")
        if after.isascii() and after.isdecimal() and len(after) < 10 and int(after) <= _RETRY_AFTER_S_MAX:
            raise RetryLater(int(after), answered)
        raise WebhookUndelivered(answered)
    if status in _REDIRECTS and not payload.follow_redirects:
        answered += "; redirects are followed with follow_redirects"
    raise WebhookRefused(answered)


def _text(response: httpx.Response, body: bytes) -> str:
    charset = (response.charset_encoding or "utf-8").lower()
    return body.decode(charset if charset in _CHARSETS else "utf-8", "replace")


def _origin(url: httpx.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _place(url: httpx.URL) -> str:
    """For messages: without the query, which is where people put tokens."""
    return one_line(str(url.copy_with(query=None, fragment=None)), 200)


def _span(payload: WebhookPayload) -> str:
    return format_duration(payload.timeout)
