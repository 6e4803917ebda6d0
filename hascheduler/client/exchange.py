"""One exchange with one replica: what is sent, what its answer means, and which replica is asked next."""

import logging
import ssl
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import httpx

from hascheduler.client.failures import REFUSED, Refused, Retryable, Unavailable
from hascheduler.client.requests import Reply, Request
from hascheduler.client.results import read_problem
from hascheduler.errors import InvalidInput
from hascheduler.model.values.redaction import redacted

T = TypeVar("T")

_log = logging.getLogger("hascheduler.client")
_ELSEWHERE = (502, 503, 504)
"""Another replica may do better."""
_NOTHING_BY_THAT_NAME = "urn:hascheduler:problem:not-found"


class Exchange:
    """Owner of whose turn it is: a replica that fails is followed by the next one, for all requests from then on.

    Each exchange names the replica that it is with, as others may have passed on meanwhile.
    """

    def __init__(self, urls: Sequence[str], token: str | None, answer_timeout_s: float) -> None:
        if not urls:
            raise InvalidInput(("urls",), "there is none", "such as http://127.0.0.1:8080")
        self._urls = [_checked(url) for several in urls for url in _apart(several)]
        self._token = _sendable(token)
        self._answer_s = answer_timeout_s
        self._turn = 0

    @property
    def replica(self) -> int:
        return self._turn

    @property
    def replicas(self) -> int:
        return len(self._urls)

    def trust(self, ca_file: str | None, tls: ssl.SSLContext | None) -> ssl.SSLContext | bool:
        """The ``verify`` of an httpx client: ``tls``, else the authorities in ``ca_file``, or those of this machine.

        Where no replica speaks HTTPS no authority is read: to read the authorities of a machine takes 20 ms.
        """
        if tls is not None:
            return tls
        if ca_file is None:
            return self._speaks_https or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(("ca_file",), f"{ca_file}: {error}", "a file of certificates, as PEM") from None

    @property
    def _speaks_https(self) -> bool:
        return any(httpx.URL(url).scheme == "https" for url in self._urls)

    def sent(self, request: Request[Any], replica: int) -> dict[str, Any]:
        """The arguments of httpx's ``request``."""
        headers = {**request.headers, **_current_trace()}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if request.content is not None:
            headers.setdefault("Content-Type", "application/json")
        return {
            "method": request.method,
            "url": f"{self._urls[replica]}{request.path}",
            "params": list(request.query),
            "headers": headers,
            "content": request.content,
            "timeout": httpx.Timeout(self._answer_s, read=self._answer_s + request.more_s + request.held_s),
        }

    def heard(self, request: Request[T], replica: int, response: httpx.Response) -> T:
        """What the answer says; `Retryable` where the request may be repeated, else `Refused` or `Unavailable`."""
        where, status, body = self._where(replica), response.status_code, _json(response)
        if response.is_success and isinstance(body, dict):
            for warning in response.headers.get_list("warning"):
                _log.warning("%s", _warned(warning))
            try:
                return request.read(Reply(response.headers, body))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                reason = f"{where} does not answer as a replica does ({error!r})"
                raise Unavailable(reason, request.key, replica=where, status=status, cause=error) from None
        problem = read_problem(body if isinstance(body, dict) else {})
        # A proxy, or a server that is no replica, does not know what is there.
        if status == httpx.codes.NOT_FOUND and problem.type == _NOTHING_BY_THAT_NAME and request.absent is not None:
            return request.absent()
        after_s = _retry_after_s(response.headers)
        if status == httpx.codes.TOO_MANY_REQUESTS:
            raise Retryable(Refused(status, problem, after_s, request.key, where), after_s)
        reason = f"{where} answered {status}: {str(problem) or '?'}"
        cause = body if isinstance(body, ValueError) else None
        unavailable = Unavailable(reason, request.key, replica=where, status=status, problem=problem, cause=cause)
        if status in _ELSEWHERE:
            self._pass_on(replica)
            raise _in_doubt(request, unavailable, after_s if len(self._urls) == 1 else None)
        if response.is_client_error and problem.detail:
            raise REFUSED.get(status, Refused)(status, problem, None, request.key, where)
        raise unavailable

    def unheard(self, request: Request[Any], replica: int, error: httpx.HTTPError) -> Exception:
        """What to raise where there was no answer."""
        reason = redacted(str(error)) or type(error).__name__
        where = self._where(replica)
        failure = Unavailable(f"{where} does not answer ({reason})", request.key, replica=where, cause=error)
        self._pass_on(replica)
        if "CERTIFICATE_VERIFY_FAILED" in reason and len(self._urls) == 1:
            return failure
        never_arrived = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        return Retryable(failure) if never_arrived else _in_doubt(request, failure)

    def _where(self, replica: int) -> str:
        return redacted(self._urls[replica])

    def _pass_on(self, replica: int) -> None:
        if self._turn == replica:
            self._turn = (replica + 1) % len(self._urls)


def _in_doubt(request: Request[Any], failure: Unavailable, after_s: float | None = None) -> Exception:
    """What to raise where the request may have been carried out."""
    if request.look is None:
        return Retryable(failure, after_s)
    look = request.look(failure)
    return failure if look is None else Retryable(failure, after_s, look)


def _current_trace() -> dict[str, str]:
    """The headers of the OpenTelemetry span that the caller is in, so that what it asks for is part of that trace."""
    # A library that is not imported has no current span.
    if "opentelemetry.trace" not in sys.modules:
        return {}
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415  # an extra
    except ImportError:
        return {}
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers


def _apart(urls: object) -> list[Any]:
    return [url.strip() for url in urls.split(",")] if isinstance(urls, str) else [urls]


def _checked(url: str) -> str:
    expected = "such as http://127.0.0.1:8080"
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidInput(("urls",), f"{redacted(str(url))!r}: {error}", expected) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(("urls",), f"{redacted(url)!r} is not a URL", expected)
    return url.rstrip("/")


def _warned(header: str) -> str:
    """The text of a header ``299 - "text"``: what the replica took and is hardly what was meant."""
    _, _, quoted = header.partition('"')
    return quoted.removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")


def _sendable(token: str | None) -> str | None:
    if token is not None and not (token and all("!" <= character <= "~" for character in token)):
        # Not shown: a line break after it is all that may be wrong.
        raise InvalidInput(("token",), "can't be a token", "printable ASCII without blanks or line breaks")
    return token


def _json(response: httpx.Response) -> object:
    """What it holds; the error where that is no JSON."""
    try:
        return response.json() if response.content else {}
    except ValueError as error:
        return error


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() and len(text) < 7 else None
