"""Requests: what each sends, and how its answer is read. No I/O: `asynchronous.asking` carries them out.

Nearly all may be sent again: reads change nothing, submits, triggers and retries carry an idempotency key, and a change
that was already made counts as made. Any other request has a ``probe``, which finds out whether it was carried out
before it is sent again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote
from uuid import uuid4

from hascheduler.client.answer import Answer
from hascheduler.client.bodies import encoded
from hascheduler.client.results import Job, JsonObject, ListPage
from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import parse_duration, parse_instant

T = TypeVar("T")

WAIT_S_MAX = 300.0
"""The longest time for which a replica holds a submit back."""
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:~-]{0,319}")
MANY_S = 60.0
"""How much longer than other requests a change of many may take."""
PAGE = 200
"""The most items of one page of a list."""
MADE = "{id}"
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
Rev = str | int | None


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A request and how to read its answer.

    ``read`` makes the answer of the JSON and the headers, and may raise if it is none. ``absent`` gives the answer if
    the replica has nothing of that name (404); without it that is a refusal. ``more_s`` is how much longer than others
    it may take. ``held_s`` is how long the replica is asked to hold it back, which does not count as failing. ``key``
    is the key under which the whole operation may be repeated. ``answers`` are statuses of failures that are answers
    here.

    ``probe`` is for a request that may not be sent twice: if the outcome is unknown, that request finds out. Its answer
    becomes the answer of this one; None if this one was not carried out. `MADE` in its path stands for the id in the
    failure; if the failure has none, nothing can find out.
    """

    method: str
    path: str
    read: Callable[[JsonObject, Mapping[str, str]], T]
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    more_s: float = 0.0
    held_s: float = 0.0
    key: str | None = None
    probe: "Request[T | None] | None" = None
    absent: Callable[[], T] | None = None
    answers: Sequence[int] = ()


def asked(
    read: Callable[[JsonObject], T], method: str, path: str, query: Sequence[tuple[str, str]] = (), body: object = None,
    **more: Any,
) -> Request[T]:  # fmt: skip
    """Return a request whose answer is ``read`` of the JSON; ``more`` are fields of `Request`."""
    content = None if body is None else encoded(body)
    return Request(method, path, lambda body, _: read(body), query, content=content, **more)


def keyed(key: str | None) -> dict[str, Any]:
    """Return the fields of a request that may be repeated under that key, or under a fresh one if None."""
    key = key_of(key)
    return {"headers": {"Idempotency-Key": key}, "key": key}


def key_of(given: str | None) -> str:
    """Return the given key, or a fresh one if None. An empty key is a mistake: it would be another job each time."""
    key = str(uuid4()) if given is None else given
    if not 1 <= len(key) <= 255 or not all("!" <= character <= "~" for character in key):
        expected = "1 to 255 printable ASCII characters without blanks"
        raise InvalidInput(("idempotency_key",), f"{key[:64]!r} is not a valid key", expected)
    return key


def submit_one(path: str, body: object, key: str | None, wait_s: float | None = None) -> Request[Job]:
    """Return the request that submits one job; with ``wait_s`` the answer comes when the job has ended, or then."""
    return Request("POST", path, _submitted, content=encoded(body), **keyed(key), **_held(wait_s))


def submit_batch(
    bodies: Sequence[Any], own_key: str, key: str, read: Callable[[JsonObject], T], *, atomic: bool
) -> Request[T]:
    """Return the request that submits at most 1,000 jobs; ``own_key`` is the key of this request."""
    # Left out if it is false: a replica of 0.2.0 does not know it.
    body = {"jobs": bodies, "atomic": True} if atomic else {"jobs": bodies}
    return asked(read, "POST", "/v1/jobs:batch", body=body, more_s=MANY_S, **{**keyed(own_key), "key": key})


def get_job(job_id: str, wait_s: float | None = None) -> Request[Job]:
    """Return the request for a job; with ``wait_s`` the answer comes when the job has ended, or then."""
    return asked(Job, "GET", job_path(job_id), **_held(wait_s))


def delete(path: str, headers: Mapping[str, str] | None = None) -> Request[bool]:
    """Return the request that deletes; its answer is False if there was nothing.

    If the outcome is unknown, a document that is gone counts as deleted.
    """
    again: Request[bool | None] = Request("DELETE", path, _yes, headers=headers or {}, absent=_yes)
    return Request("DELETE", path, _yes, headers=headers or {}, probe=again, absent=lambda: False)


def _yes(*_: object) -> bool:
    return True


def page_of(read: Callable[[JsonObject], T]) -> Callable[[JsonObject], ListPage[T]]:
    """Return a function that reads a page of a list, each item with ``read``."""
    return lambda body: ListPage(tuple(map(read, body["items"])), body["next"], body)


def word_of(body: JsonObject) -> str:
    """Return the word that says what state the request found."""
    return str(body["answer"])


def job_path(job_id: str, verb: str = "") -> str:
    """Return a path such as ``/v1/jobs/job:0194f3/cancel``; raise `InvalidInput` if that is not the id of a job."""
    if not _JOB_ID.fullmatch(job_id):
        raise InvalidInput(("job_id",), f"{job_id[:64]!r} is not a job id", "such as job:0194f3…")
    return f"/v1/jobs/{job_id}" + (f"/{verb}" if verb else "")


def named(collection: str, name: str, verb: str = "") -> str:
    """Return a path such as ``/v1/schedules/nightly/pause``; raise `InvalidInput` if a path can't hold the name."""
    if not name.strip("."):
        raise InvalidInput(("name",), f"{name[:64]!r} is not a name", "letters, digits, '.', '_' and '-'")
    return f"/v1/{collection}/{quote(name, safe=':')}" + (f"/{verb}" if verb else "")


def matching(if_match: Rev, if_none_match: Literal["*"] | None = None) -> dict[str, str]:
    """Return the headers that demand a revision (the ``rev`` of an answer or a whole ETag), or that there is none."""
    tag = f'"{if_match}"' if isinstance(if_match, int) else if_match
    return {name: text for name, text in (("If-None-Match", if_none_match), ("If-Match", tag)) if text is not None}


def probe_for(
    path: str, wanted: JsonObject, read: Callable[[JsonObject], Any] = Answer, *, nulls_remove: bool = False
) -> Request[Any]:
    """Return the ``probe`` of a request that leaves a document at ``path`` with everything ``wanted``.

    A null stands for the default, whatever that is, or for nothing if ``nulls_remove``.
    """

    def read_found(body: JsonObject) -> Any:
        return read(body) if _shows(body, wanted, not nulls_remove) else None

    return asked(read_found, "GET", path, absent=lambda: None)


def take_back(collection: str) -> Request[Any]:
    """Return the ``probe`` of a request whose result only its answer shows: delete the result, to make it again."""
    return Request("DELETE", f"/v1/{collection}/{MADE}", lambda *_: None, absent=lambda: None)


def _shows(shown: Any, asked: Any, any_null: bool) -> bool:
    """Return True if the answer shows what was asked for; replicas write spans and instants in a form of their own."""
    match asked:
        case None:
            return any_null or shown is None
        case Mapping():
            return isinstance(shown, Mapping) and all(
                encoded(shown.get(name)) == encoded(value)
                if name == "payload"
                else _shows(shown.get(name), value, any_null)
                for name, value in asked.items()
            )
        case list() | tuple():
            is_as_long = isinstance(shown, list) and len(shown) == len(asked)
            return is_as_long and all(_shows(one, other, any_null) for one, other in zip(shown, asked, strict=True))
        case _:
            return encoded(shown) == encoded(asked) or _time_of(shown) == _time_of(asked) is not None


def _time_of(value: Any) -> tuple[str, int] | None:
    with suppress(InvalidInput):
        return "span", parse_duration(value)
    with suppress(InvalidInput):
        return ("instant", parse_instant(value)) if isinstance(value, str) else None
    return None


def _held(wait_s: float | None) -> dict[str, Any]:
    """Return the fields of a request that a replica is asked to hold back."""
    if wait_s is None:
        return {}
    # NaN compares False, so it is refused too.
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise InvalidInput(("wait",), f"{wait_s:g} s is out of range", f"0 to {WAIT_S_MAX:g} s")
    return {"query": [("wait", f"{round(wait_s * 1_000)}ms")], "held_s": wait_s}


def _submitted(body: JsonObject, headers: Mapping[str, str]) -> Job:
    replayed, is_duplicate = headers.get("Idempotency-Replayed") == "true", "Duplicate-Of" in headers
    return Job(body, replayed=replayed, is_duplicate=is_duplicate)
