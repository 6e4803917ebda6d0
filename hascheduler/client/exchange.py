"""One exchange with one replica: what to send, what the answer means, which replica is next and after which pause."""

import logging
import ssl
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from random import uniform
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2

from hascheduler.client.failures import REFUSED, Refused, Retryable, Unavailable
from hascheduler.client.requests import MADE, Request
from hascheduler.client.results import Problem
from hascheduler.errors import InvalidInput
from hascheduler.model.values.redaction import redacted

T = TypeVar("T")

_log = logging.getLogger("hascheduler.client")
_ELSEWHERE = (502, 503, 504)
"""Statuses after which another replica may do better."""
_NOTHING_BY_THAT_NAME = "urn:hascheduler:problem:not-found"
_PAUSE_MAX_S = 5.0


class Exchange:
    """Owner of whose turn it is: if a replica fails, all later requests go to the next one.

    Each exchange names the replica that it is with, as others may have passed on meanwhile.
    """

    def __init__(self, urls: Sequence[str], token: str | None, answer_timeout_s: float) -> None:
        if not urls:
            raise InvalidInput(("urls",), "missing", "such as http://127.0.0.1:8080")
        self._urls = [_checked(url.strip()) for several in urls for url in str(several).split(",")]
        self._token = _sendable(token)
        self._answer_s = answer_timeout_s
        self.replica = 0
        self.replicas = len(self._urls)

    def trust(self, ca_file: str | None, tls: ssl.SSLContext | None) -> ssl.SSLContext | bool:
        """Return the ``verify`` for httpx2: ``tls``, or else the authorities in ``ca_file`` or of this machine.

        If no replica speaks HTTPS, no authorities are read: reading those of a machine takes 20 ms.
        """
        if tls is not None:
            return tls
        if ca_file is None:
            speaks_https = any(url.lower().startswith("https:") for url in self._urls)
            return speaks_https or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            return ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(("ca_file",), f"{ca_file}: {error}", "a file of certificates, as PEM") from None

    def sent(self, request: Request[Any], replica: int) -> dict[str, Any]:
        """Return the arguments of httpx2's ``request``."""
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
            "timeout": httpx2.Timeout(self._answer_s, read=self._answer_s + request.more_s + request.held_s),
        }

    def read_response(self, request: Request[T], replica: int, response: httpx2.Response) -> T:
        """Return the answer; raise `Retryable` if the request may be repeated, else `Refused` or `Unavailable`."""
        where, status, body = redacted(self._urls[replica]), response.status_code, _json(response)
        if (response.is_success or status in request.answers) and isinstance(body, dict):
            for warning in response.headers.get_list("warning"):
                _log.warning("%s", _warned(warning))
            try:
                return request.read(body, response.headers)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                reason = f"{where} sent an invalid answer ({error!r})"
                raise Unavailable(reason, request.key, where, status, cause=error) from None
        problem = Problem(body)
        # A proxy, or a server that is no replica, does not know what is there.
        if status == httpx2.codes.NOT_FOUND and problem.type == _NOTHING_BY_THAT_NAME and request.absent is not None:
            return request.absent()
        pause = response.headers.get("Retry-After", "")
        after_s = float(pause) if pause.isdecimal() and len(pause) < 7 else None
        if status == httpx2.codes.TOO_MANY_REQUESTS:
            raise Retryable(Refused(status, problem, after_s, request.key, where), after_s)
        reason = f"{where} answered {status}: {str(problem) or '?'}"
        cause = body if isinstance(body, ValueError) else None
        unavailable = Unavailable(reason, request.key, where, status, problem, cause)
        if status in _ELSEWHERE:
            self._pass_on(replica)
            raise _in_doubt(request, unavailable, after_s if self.replicas == 1 else None)
        if response.is_client_error and problem.detail:
            raise REFUSED.get(status, Refused)(status, problem, None, request.key, where)
        raise unavailable

    def unanswered(self, request: Request[Any], replica: int, error: httpx2.HTTPError) -> Exception:
        """Return the error to raise if there was no answer."""
        reason = redacted(str(error)) or type(error).__name__
        where = redacted(self._urls[replica])
        failure = Unavailable(f"{where} does not answer ({reason})", request.key, where, cause=error)
        self._pass_on(replica)
        if "CERTIFICATE_VERIFY_FAILED" in reason and self.replicas == 1:
            return failure
        never_arrived = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        return Retryable(failure) if never_arrived else _in_doubt(request, failure)

    def _pass_on(self, replica: int) -> None:
        if self.replica == replica:
            self.replica = (replica + 1) % self.replicas


class Tries:
    """The retries of a request and the pauses before them.

    A pause is the one that the replica asks for, or else longer each time. Jitter keeps clients that failed together
    from returning together. The last pause ends before ``patience_s`` plus the ``held_s`` for which the replica may
    hold the request back. Without patience each of the ``replicas`` is tried once, however long that takes.
    """

    def __init__(self, patience_s: float, held_s: float, replicas: int) -> None:
        self._until = time.monotonic() + patience_s + held_s if patience_s else None
        self._left = replicas
        self._pause_max_s = 0.1

    def pause_s(self, met: Retryable) -> float:
        """Return how long to wait before the next try; raise the last failure if there is none."""
        pause_s = (met.after_s or 0.0) + uniform(0.0, self._pause_max_s)  # noqa: S311  # jitter, no secret
        self._pause_max_s = min(2 * self._pause_max_s, _PAUSE_MAX_S)
        self._left -= 1
        if self._until is None:
            # After a 429 the next try would ask the same replica.
            is_over = isinstance(met.failure, Refused) or self._left <= 0
        else:
            is_over = time.monotonic() + pause_s >= self._until
        if is_over:
            raise met.failure from None
        return pause_s


def _in_doubt(request: Request[Any], failure: Unavailable, after_s: float | None = None) -> Exception:
    """Return the error to raise if the request may have been carried out."""
    probe = request.probe
    if probe is not None and MADE in probe.path:
        if failure.problem is None or failure.problem.id is None:
            return failure
        probe = replace(probe, path=probe.path.replace(MADE, quote(failure.problem.id, safe=":")))
    return Retryable(failure, after_s, probe)


def _current_trace() -> dict[str, str]:
    """Return the headers of the caller's OpenTelemetry span, so that the request is part of that trace."""
    # There is no current span unless the library is imported.
    if "opentelemetry.trace" not in sys.modules:
        return {}
    try:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415  # an extra
    except ImportError:
        return {}
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers


def _checked(url: str) -> str:
    expected = "such as http://127.0.0.1:8080"
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InvalidInput(("urls",), f"{redacted(url)!r}: {error}", expected) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(("urls",), f"{redacted(url)!r} is not a URL", expected)
    return url.rstrip("/")


def _warned(header: str) -> str:
    """Return the text of a header ``299 - "text"``: the replica accepted input that is probably a mistake."""
    _, _, quoted = header.partition('"')
    return quoted.removesuffix('"').replace('\\"', '"').replace("\\\\", "\\")


def _sendable(token: str | None) -> str | None:
    if token is not None and not (token and all("!" <= character <= "~" for character in token)):
        # The token is not shown: it may be right but for a line break after it.
        raise InvalidInput(("token",), "is not a valid token", "printable ASCII without blanks or line breaks")
    return token


def _json(response: httpx2.Response) -> object:
    """Return the decoded body; the error if it is not JSON."""
    try:
        return response.json() if response.content else {}
    except ValueError as error:
        return error
