"""Speaks to one replica's HTTP API, and tells the caller's fault from the world's.

A refusal (4xx with a problem) is the caller's: a `CallerError`, with the fields that are wrong. Everything else without
a usable answer is the world's: nothing listens, it is too slow, it is no replica, or the replica can't reach its
database.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import httpx

from hascheduler.cli import credentials
from hascheduler.errors import CallerError, Conflict, InvalidInput, WorldError

Answer = Mapping[str, Any]
Query = Sequence[tuple[str, str]]

PATIENCE_S = 5.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,319}")
_NOT_FOUND = "urn:hascheduler:problem:not-found"


class NoSuchResource(CallerError):
    """The replica has nothing by that name."""


class RevisionChanged(Conflict):
    """The resource has another revision than the one that was read."""


class Client:
    """Requests to the replica at ``url``, with this user's token; an `InvalidInput` when that is no URL."""

    def __init__(self, url: str) -> None:
        address = _checked(url)
        context = credentials.ssl_context()
        self._http = httpx.Client(
            base_url=address,
            timeout=PATIENCE_S,
            headers=credentials.auth_headers(),
            verify=True if context is None else context,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, query: Query = ()) -> dict[str, Any]:
        return self.ask("GET", path, query=query)

    def find(self, path: str) -> dict[str, Any] | None:
        """The resource at ``path``, or None where there is none."""
        try:
            return self.get(path)
        except NoSuchResource:
            return None

    def items(self, path: str, query: Query = ()) -> Iterator[dict[str, Any]]:
        """The items of all pages."""
        after: Query = ()
        while True:
            page = self.get(path, (*query, ("limit", "200"), *after))
            yield from page.get("items", [])
            if page.get("next") is None:
                return
            after = (("after", page["next"]),)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Query = (),
        rev: int | None = None,
        new: bool = False,
    ) -> dict[str, Any]:
        """The answer, {} when it has no body.

        With ``rev`` only that revision is changed, with ``new`` nothing is replaced; else it is `RevisionChanged`.
        """
        headers = {} if rev is None else {"If-Match": f'"{rev}"'}
        if new:
            headers["If-None-Match"] = "*"
        return self.exchange(method, path, body, query=query, headers=headers)[1]

    def exchange(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Query = (),
        headers: Mapping[str, str] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> tuple[Mapping[str, str], dict[str, Any]]:
        """As `ask`: the answer's headers, and the answer."""
        content = None if body is None else _encoded(body)
        said = dict(headers or {}) | ({} if content is None else {"Content-Type": "application/json"})
        try:
            response = self._http.request(
                method, path, params=list(query), headers=said, content=content, timeout=patience_s
            )
            answer = response.json() if response.content else {}
        except httpx.ConnectError as error:
            raise self._unreached(error) from None
        except (httpx.HTTPError, ValueError) as error:
            kind = type(error).__name__
            raise WorldError(f"{self._http.base_url} does not answer as a replica does ({kind})") from None
        if not response.is_success or not isinstance(answer, dict):
            raise self._refused(response.status_code, answer)
        return response.headers, answer

    def lines(self, path: str, query: Query = (), *, patience_s: float) -> Iterator[str]:
        """The lines of a stream; silence for ``patience_s`` is the world's fault."""
        try:
            with self._http.stream("GET", path, params=list(query), timeout=patience_s) as response:
                if not response.is_success:
                    response.read()
                    raise self._refused(response.status_code, response.json())
                yield from response.iter_lines()
        except httpx.ConnectError as error:
            raise self._unreached(error) from None
        except (httpx.HTTPError, ValueError) as error:
            raise WorldError(f"{self._http.base_url} broke off ({type(error).__name__})") from None

    def _unreached(self, error: httpx.ConnectError) -> CallerError | WorldError:
        where, reason = self._http.base_url, str(error)
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return CallerError(f"{where} is not trusted ({reason}); --ca-file names who is")
        if "[SSL" in reason:
            return WorldError(f"{where} does not speak HTTPS as this machine does ({reason})")
        return WorldError(f"nothing answers at {where}; is a replica running there?")

    def _refused(self, status: int, answer: object) -> CallerError | WorldError:
        problem = answer if isinstance(answer, dict) else {}
        detail = str(problem.get("detail", ""))
        match status:
            case 404 if problem.get("type") == _NOT_FOUND:
                return NoSuchResource(detail)
            case 409:
                return Conflict(detail)
            case 401 if detail:
                return CallerError(f"{self._http.base_url}: {detail}; HASCHEDULER_TOKEN is where it belongs")
            case 403 if detail:
                return CallerError(detail)
            case 412:
                return RevisionChanged(
                    f"{detail}; somebody changed it meanwhile: look again and repeat" if detail else "changed"
                )
            case 400 | 408 | 413 | 415 | 422 | 428 if detail:
                return _invalid(problem, detail)
            case _:
                return WorldError(f"{self._http.base_url} answered {status}: {detail or 'that is no replica'}")


def path_of(kind: str, name: str, *rest: str) -> str:
    """``/v1/<kind>s/<name>/…``; `InvalidInput` when nothing can have that name."""
    check_name(name, ("NAME",))
    return "/".join((f"/v1/{kind}s", name, *rest))


def job_path(id: str, *rest: str) -> str:
    """``/v1/jobs/<id>/…``; `InvalidInput` when no job can have that id."""
    if not _JOB_ID.fullmatch(id):
        raise InvalidInput(
            ("JOB",), f"{id[:64]!r} is no id of a job", "such as job:0194f3… or fire:nightly:1893456000000"
        )
    return "/".join(("/v1/jobs", id, *rest))


def check_name(name: str, path: tuple[str, ...]) -> None:
    if not _NAME.fullmatch(name):
        expected = "1 to 128 letters, digits, '.', '_' or '-', beginning with a letter or digit"
        raise InvalidInput(path, f"{name[:64]!r} is not a name", expected)


def _encoded(body: object) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(("body",), f"is nothing that JSON can hold: {error}", "JSON") from None


def _invalid(problem: Answer, detail: str) -> CallerError:
    errors = problem.get("errors") or []
    if len(errors) == 1:
        one = errors[0]
        return InvalidInput(
            tuple(one["path"].split(".")) if one["path"] else ("body",), one["problem"], one["expected"]
        )
    lines = [f"{one['path']}: {one['problem']}; expected {one['expected']}" for one in errors]
    return CallerError(" | ".join(lines) or detail)


def _checked(url: str) -> httpx.URL:
    expected = "such as http://127.0.0.1:8080"
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InvalidInput(("--url",), f"{url!r}: {error}", expected) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(("--url",), f"{url!r} is not a URL", expected)
    return parsed
