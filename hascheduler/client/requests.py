"""What a request is, and those of jobs: what each sends, and how its answer is read. No I/O: the schedulers send them.

Nearly all may be sent again: reads change nothing, submits, triggers and retries carry an idempotency key, and a change
that has been made already is met as made. What may not says how to find out whether it was carried out, and that is
looked at before it is sent again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from hascheduler.client.answer import Answer
from hascheduler.client.bodies import encoded, query_of
from hascheduler.client.failures import Unavailable
from hascheduler.client.results import (
    BatchResult,
    Changed,
    Job,
    JsonObject,
    ListPage,
    read_batch_result,
    read_changed,
    read_job,
)
from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import parse_duration
from hascheduler.model.values.instants import parse_instant

T = TypeVar("T")

WAIT_S_MAX = 300.0
"""The longest that a replica holds a submit back."""
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,319}")
MANY_S = 60.0
"""So much longer may it take to change many."""
PAGE = 200
"""The most that one page of a list has."""
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@dataclass(frozen=True, slots=True)
class Reply:
    headers: Mapping[str, str]
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """``read`` may raise where the answer is none. ``absent`` gives the answer where the replica has nothing of that
    name (404); without it that is refused.

    ``look`` is for a request that may not be sent twice. Where its outcome is unknown, it gives the request that finds
    out, whose answer is that of this one, or None: it was not carried out. It gives None where nothing can find out.

    ``more_s`` is how much longer than others it may take. ``held_s`` is how long the replica is asked to hold it back:
    that is no time in which it fails. ``key`` is what the whole operation may be repeated under.
    """

    method: str
    path: str
    read: Callable[[Reply], T]
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    more_s: float = 0.0
    held_s: float = 0.0
    key: str | None = None
    look: "Callable[[Unavailable], Request[T | None] | None] | None" = None
    absent: Callable[[], T] | None = None


def asked(
    read: Callable[[JsonObject], T],
    method: str,
    path: str,
    query: Sequence[tuple[str, str]] = (),
    body: object = None,
    **more: Any,
) -> Request[T]:
    """Return the request whose answer is what ``read`` makes of the JSON; ``more`` are fields of `Request`."""
    content = None if body is None else encoded(body)
    return Request(method, path, lambda reply: read(reply.body), query, content=content, **more)


def keyed(key: str) -> dict[str, Any]:
    """Return the fields of a request that may be repeated under a key."""
    return {"headers": {"Idempotency-Key": demand_key(key)}, "key": key}


def submit(body: JsonObject, key: str, wait_s: float | None = None) -> Request[Job]:
    """With ``wait_s`` the answer comes when the job has ended, or then."""
    return Request("POST", "/v1/jobs", submitted, content=encoded(body), **keyed(key), **_held(wait_s))


def submit_batch(
    bodies: Sequence[Any], own_key: str, key: str, read: Callable[[JsonObject], T], *, atomic: bool = False
) -> Request[T]:
    """At most 1,000 jobs; ``own_key`` is that of this request."""
    # Left out if it is false: a replica of 0.2.0 does not know it.
    body = {"jobs": bodies, "atomic": True} if atomic else {"jobs": bodies}
    return asked(read, "POST", "/v1/jobs:batch", body=body, more_s=MANY_S, **{**keyed(own_key), "key": key})


def get(job_id: str, wait_s: float | None = None) -> Request[Job]:
    """With ``wait_s`` the answer comes when the job has ended, or then."""
    return asked(read_job, "GET", job_path(job_id), **_held(wait_s))


def page(
    path: str, query: Sequence[tuple[str, str]], read: Callable[[JsonObject], T], limit: int | None, after: str | None
) -> Request[ListPage[T]]:
    """One page of a list, the next one ``after`` what the one before says; ``read`` makes an item of it."""

    def read_page(body: JsonObject) -> ListPage[T]:
        return ListPage(tuple(map(read, body["items"])), body["next"], body)

    return asked(read_page, "GET", path, [*query, *query_of(limit=limit, after=after)])


def change_where(what: str, body: JsonObject, key: str | None) -> Request[Changed]:
    return asked(read_changed, "POST", f"/v1/{what}", body=body, more_s=MANY_S, **({} if key is None else keyed(key)))


def named(collection: str, name: str, verb: str = "") -> str:
    """``/v1/schedules/nightly/pause``; `InvalidInput` for what can't be part of a path."""
    if not name.strip("."):
        raise InvalidInput(("name",), f"{name[:64]!r} is no name", "letters, digits, '.', '_' and '-'")
    return f"/v1/{collection}/{quote(name, safe=':')}" + (f"/{verb}" if verb else "")


def matching(if_match: str | int | None, if_none_match: Literal["*"] | None = None) -> dict[str, str]:
    """The headers that demand a revision, the ``rev`` of an answer or a whole ETag, or that there is none."""
    headers: dict[str, str] = {} if if_none_match is None else {"If-None-Match": if_none_match}
    if if_match is not None:
        headers["If-Match"] = f'"{if_match}"' if isinstance(if_match, int) else if_match
    return headers


def as_it_is(body: Any) -> Any:
    return body


def word_of(body: JsonObject) -> str:
    """Return the word that says what was met."""
    return str(body["answer"])


def look_for(
    path: str, wanted: JsonObject, read: Callable[[JsonObject], Any] = Answer, *, nulls_remove: bool = False
) -> Callable[[Unavailable], Request[Any]]:
    """The ``look`` of a request that leaves at ``path`` what shows all that is ``wanted``. A null stands for the
    default, whatever that is, or for nothing if ``nulls_remove``."""

    def read_found(body: JsonObject) -> Any:
        return read(body) if _shows(body, wanted, not nulls_remove) else None

    return lambda _: asked(read_found, "GET", path, absent=_nothing)


def look_whether_gone(path: str) -> Callable[[Unavailable], Request[Any]]:
    """The ``look`` of a request that deletes what is at ``path``."""
    return lambda _: Request("GET", path, lambda _: None, absent=_done)


def delete_again(path: str) -> Callable[[Unavailable], Request[Any]]:
    """As `look_whether_gone`, of what can't be looked at: what is not there any more was deleted before."""
    return lambda _: Request("DELETE", path, lambda _: True, absent=_done)


def take_back(collection: str) -> Callable[[Unavailable], Request[Any] | None]:
    """The ``look`` of a request that makes what only its answer tells of: it is deleted, to be made again."""

    def request(failure: Unavailable) -> Request[Any] | None:
        id = None if failure.problem is None else failure.problem.id
        return None if id is None else Request("DELETE", named(collection, id), lambda _: None, absent=_nothing)

    return request


def _nothing() -> None:
    return None


def _done() -> bool:
    return True


def _shows(shown: Any, asked: Any, any_null: bool) -> bool:
    """Whether an answer shows what was asked for; replicas write spans and instants in a form of their own."""
    match asked:
        case None:
            return any_null or shown is None
        case Mapping():
            return isinstance(shown, Mapping) and all(
                _is_same_json(shown.get(name), value) if name == "payload" else _shows(shown.get(name), value, any_null)
                for name, value in asked.items()
            )
        case list() | tuple():
            is_as_long = isinstance(shown, list) and len(shown) == len(asked)
            return is_as_long and all(_shows(one, other, any_null) for one, other in zip(shown, asked, strict=True))
        case _:
            return _is_same_json(shown, asked) or any(
                read(shown) == read(asked) is not None for read in (_span_ms, _instant_ms)
            )


def _is_same_json(shown: Any, asked: Any) -> bool:
    return encoded(shown) == encoded(asked)


def _span_ms(value: Any) -> int | None:
    with suppress(InvalidInput):
        return parse_duration(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    return None


def _instant_ms(value: Any) -> int | None:
    with suppress(InvalidInput):
        return parse_instant(value) if isinstance(value, str) else None
    return None


def delete(path: str, **more: Any) -> Request[bool]:
    """Its answer is False if there was none."""
    return Request("DELETE", path, lambda _: True, absent=lambda: False, **more)


def demand_key(key: str) -> str:
    if not 1 <= len(key) <= 255 or not all("!" <= character <= "~" for character in key):
        expected = "1 to 255 printable ASCII characters without blanks"
        raise InvalidInput(("idempotency_key",), f"{key[:64]!r} can't be a key", expected)
    return key


def _held(wait_s: float | None) -> dict[str, Any]:
    """Return the fields of a request that a replica is asked to hold back."""
    if wait_s is None:
        return {}
    # What is no number compares False, so it is refused too.
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise InvalidInput(("wait",), f"{wait_s:g} s is out of range", f"0 to {WAIT_S_MAX:g} s")
    return {"query": [("wait", f"{round(wait_s * 1_000)}ms")], "held_s": wait_s}


def job_path(job_id: str, verb: str = "") -> str:
    """``/v1/jobs/job:0194f3/cancel``; `InvalidInput` for what is no id of a job."""
    if not _JOB_ID.fullmatch(job_id):
        raise InvalidInput(("job_id",), f"{job_id[:64]!r} is no id of a job", "such as job:0194f3…")
    return f"/v1/jobs/{job_id}" + (f"/{verb}" if verb else "")


def submitted(reply: Reply) -> Job:
    replayed, is_duplicate = reply.headers.get("Idempotency-Replayed") == "true", "Duplicate-Of" in reply.headers
    return read_job(reply.body, replayed=replayed, is_duplicate=is_duplicate)


def batch_of(body: JsonObject) -> tuple[str, tuple[BatchResult, ...]]:
    return str(body["batch"]), tuple(map(read_batch_result, body["results"]))
