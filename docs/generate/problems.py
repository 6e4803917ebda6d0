"""Every problem type that the API may answer with, collected from the calls that make problems."""

import ast
import re
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from docs.generate.markdown import code, fenced, table

_PACKAGE = Path(__file__).parents[2] / "hascheduler"
_MODULES = (*sorted((_PACKAGE / "api").rglob("*.py")), *sorted((_PACKAGE / "shards").rglob("*.py")))
_KIND = re.compile(r"[a-z]+(-[a-z]+)*")
_INTRO = """\
## Problem types

A refusal is `application/problem+json` ([RFC 9457](https://www.rfc-editor.org/rfc/rfc9457)). Programs compare `type`,
people read `detail`, and `errors` lists each wrong field with what was expected: at most 50, with the number of others
in `detail`. `path` starts at the top of the body, or names a parameter.
"""
_EXAMPLE = """\
{
  "type": "urn:hascheduler:problem:invalid-request",
  "title": "Unprocessable Entity",
  "status": 422,
  "detail": "priority: 11 is too large; expected at most 10",
  "errors": [{"path": "priority", "problem": "11 is too large", "expected": "at most 10"}]
}
"""
_MEANINGS = {
    "body-too-large": "the body is larger, or has more values, than its route allows",
    "conflict": "the name is taken, the state does not allow it, or the key was used with another body",
    "forbidden": "the token's role or tenant does not allow it: `detail` names a role that does",
    "foreign-host": "without tokens `Host` must be a name of the replica, see `HASCHEDULER_HTTP_ALLOWED_HOSTS`",
    "foreign-origin": "the page of another site made the request",
    "internal-error": "a bug in the server: its log has the stack trace",
    "invalid-request": "understood, but fields are wrong: `errors` names them",
    "malformed-http": "not an HTTP request, or its head is too large; the connection ends",
    "malformed-json": "the body is not JSON",
    "method-not-allowed": "`Allow` has the methods of this path",
    "moving": "the tenant is moving to another shard, and writes are refused meanwhile: retry after `Retry-After`",
    "no-such-route": "the path does not exist",
    "not-found": "no object with that name or id exists for this token's tenant",
    "not-registered": "the processor is not registered, or another token registered it: register again",
    "outcome-unknown": "the write may have been carried out: read the `id` of the problem at `Location`,"
    " or repeat it under its `Idempotency-Key`",
    "overloaded": "the shard or this replica is overloaded: retry after `Retry-After`",
    "refused": "refused by the web framework: `detail` has the reason",
    "revision-mismatch": "`If-Match` names another revision than the stored one: read it again",
    "shard-unanswered": "no replica that hosts the shard answers: retry after `Retry-After`. `detail` says if a"
    " worker's forwarded request may have been carried out; repeating it is harmless",
    "share-used-up": "this token or address has used its share of the replica's capacity: wait for its other requests",
    "slow-request": "the body arrived too slowly",
    "timed-out": "the answer took too long",
    "too-busy": "the replica is at capacity: retry later, or use another replica",
    "too-many-requests": "the tenant is over its limit, or waiting jobs have as many dependencies as allowed:"
    " retry after `Retry-After`",
    "too-many-schedules": "the tenant has as many schedules as allowed: delete some, or have the limit raised",
    "unauthorized": "no token, or one that is unknown, revoked or expired",
    "unavailable": "the database (of the shard that `detail` names) did not answer in time",
    "unexpected-body": "the route takes no body",
    "unexpected-header": "the route does not support `Idempotency-Key`; `errors` lists those that do",
    "unreadable-document": "a stored document cannot be read: replace it with PUT or `hascheduler apply`, or delete it",
    "unsupported-media-type": "the body is not JSON by its `Content-Type` or has a `Content-Encoding`",
}
_BY_FRAMEWORK = {"no-such-route": "404", "method-not-allowed": "405", "refused": "4xx"}
"""Problems whose status is not written where they are made."""


def section() -> str:
    found: dict[str, set[str]] = {}
    for kind, status in _calls():
        found.setdefault(kind, set()).add(status or _BY_FRAMEWORK[kind])
    assert set(found) == set(_MEANINGS), f"explain, or remove from _MEANINGS: {set(found) ^ set(_MEANINGS)}"
    rows = (
        (", ".join(sorted(statuses)), code(kind), _MEANINGS[kind])
        for kind, statuses in sorted(found.items(), key=lambda item: (sorted(item[1]), item[0]))
    )
    return "\n".join(
        (
            _INTRO,
            fenced(_EXAMPLE, "json"),
            "Each type is `urn:hascheduler:problem:` followed by a word of this table.\n",
            table(("status", "type", "means, and what to do"), rows),
        )
    )


def _calls() -> Iterator[tuple[str, str | None]]:
    """Yield the kind and status of each call whose first two arguments are a status and a kind."""
    for path in _MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            match node.args[:2]:
                case [ast.Attribute(value=ast.Name(id="HTTPStatus"), attr=name), ast.Constant(value=str(kind))]:
                    if _KIND.fullmatch(kind):
                        yield kind, str(HTTPStatus[name].value)
                case [ast.Constant(value=int(status)), ast.Constant(value=str(kind))] if _KIND.fullmatch(kind):
                    yield kind, str(status)
                case [ast.Attribute(attr="status_code"), ast.Constant(value=str(kind))]:
                    yield kind, None
