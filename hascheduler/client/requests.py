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

from hascheduler.client.bodies import encoded, query_of
from hascheduler.client.failures import Unavailable
from hascheduler.client.results import (
    BatchResult,
    Changed,
    Job,
    Json,
    ListPage,
    Revived,
    read_batch_result,
    read_changed,
    read_job,
    read_revived,
)
from hascheduler.errors import InvalidInput
from hascheduler.model.values.durations import parse_duration
from hascheduler.model.values.instants import parse_instant

T = TypeVar("T")

WAIT_S_MAX = 300.0
"""The longest that a replica holds a submit back."""
_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,319}")
_MANY_S = 60.0
PAGE = 200
"""The most that one page of a list has."""
MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}


@dataclass(frozen=True, slots=True)
class Answer:
    headers: Mapping[str, str]
    body: Json


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
    read: Callable[[Answer], T]
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    more_s: float = 0.0
    held_s: float = 0.0
    key: str | None = None
    look: "Callable[[Unavailable], Request[T | None] | None] | None" = None
    absent: Callable[[], T] | None = None


def submit(body: Json, key: str, wait_s: float | None = None) -> Request[Job]:
    """With ``wait_s`` the answer comes when the job has ended, or then."""
    query = [] if wait_s is None else [("wait", f"{_milliseconds(wait_s)}ms")]
    return Request(
        "POST",
        "/v1/jobs",
        submitted,
        query,
        {"Idempotency-Key": demand_key(key)},
        encoded(body),
        held_s=wait_s or 0.0,
        key=key,
    )


def submit_batch(
    bodies: Sequence[Any], own_key: str, key: str, read: Callable[[Answer], T], *, atomic: bool = False
) -> Request[T]:
    """At most 1,000 jobs; ``own_key`` is that of this request."""
    headers = {"Idempotency-Key": demand_key(own_key)}
    # Left out where it is false: a replica of 0.2.0 does not know it.
    content = encoded({"jobs": bodies, "atomic": True} if atomic else {"jobs": bodies})
    return Request("POST", "/v1/jobs:batch", read, headers=headers, content=content, more_s=_MANY_S, key=key)


def get(job_id: str, wait_s: float | None = None) -> Request[Job]:
    """With ``wait_s`` the answer comes when the job has ended, or then."""
    query = [] if wait_s is None else [("wait", f"{_milliseconds(wait_s)}ms")]
    return Request("GET", _path(job_id), job_of, query, held_s=wait_s or 0.0)


def why(job_id: str) -> Request[Any]:
    return Request("GET", f"{_path(job_id)}/why", body_of)


def page(
    path: str, query: Sequence[tuple[str, str]], read: Callable[[Json], T], limit: int | None, after: str | None
) -> Request[ListPage[T]]:
    """One page of a list, the next one ``after`` what the one before says; ``read`` makes an item of it."""

    def read_page(answer: Answer) -> ListPage[T]:
        return ListPage(tuple(read(one) for one in answer.body["items"]), answer.body["next"], answer.body)

    return Request("GET", path, read_page, [*query, *query_of(limit=limit, after=after)])


def change(job_id: str, verb: str, **body: object) -> Request[str]:
    """``cancel`` or ``reprioritize``; the answer is the word that says what was met."""
    return Request(
        "POST",
        f"{_path(job_id)}/{verb}",
        lambda answer: str(answer.body["answer"]),
        content=encoded(body) if body else None,
    )


def retry(job_id: str, key: str, *, with_dependents: bool = False) -> Request[Revived]:
    return Request(
        "POST",
        f"{_path(job_id)}/retry",
        lambda answer: read_revived(answer.body),
        headers={"Idempotency-Key": demand_key(key)},
        content=encoded({"with_dependents": True}) if with_dependents else None,
        more_s=_MANY_S if with_dependents else 0.0,
        key=key,
    )


def change_where(what: str, body: Json, key: str | None) -> Request[Changed]:
    return Request(
        "POST",
        f"/v1/{what}",
        lambda answer: read_changed(answer.body),
        headers={} if key is None else {"Idempotency-Key": demand_key(key)},
        content=encoded(body),
        more_s=_MANY_S,
        key=key,
    )


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


def as_it_is(item: Json) -> Any:
    return item


def body_of(answer: Answer) -> Any:
    return answer.body


def items_of(answer: Answer) -> Any:
    return answer.body["items"]


def job_of(answer: Answer) -> Job:
    return read_job(answer.body)


def look_for(path: str, asked: Json, *, nulls_remove: bool = False) -> Callable[[Unavailable], Request[Any]]:
    """The ``look`` of a request that leaves at ``path`` what shows all that is ``asked``. A null stands for the
    default, whatever that is, or for nothing if ``nulls_remove``."""

    def read(answer: Answer) -> Any:
        return answer.body if _shows(answer.body, asked, not nulls_remove) else None

    return lambda _: Request("GET", path, read, absent=_nothing)


def look_whether_gone(path: str) -> Callable[[Unavailable], Request[Any]]:
    """The ``look`` of a request that deletes what is at ``path``."""
    return lambda _: Request("GET", path, lambda _: None, absent=_done)


def delete_again(path: str) -> Callable[[Unavailable], Request[Any]]:
    """As `look_whether_gone`, of what can't be looked at: what is not there any more was deleted before."""
    return lambda _: Request("DELETE", path, deleted, absent=_done)


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


def deleted(_: Answer) -> bool:
    return True


def not_there() -> bool:
    return False


def demand_key(key: str) -> str:
    if not 1 <= len(key) <= 255 or not all("!" <= character <= "~" for character in key):
        expected = "1 to 255 printable ASCII characters without blanks"
        raise InvalidInput(("idempotency_key",), f"{key[:64]!r} can't be a key", expected)
    return key


def _milliseconds(wait_s: float) -> int:
    # What is no number compares False, so it is refused too.
    if not 0 <= wait_s <= WAIT_S_MAX:
        raise InvalidInput(("wait",), f"{wait_s:g} s is out of range", f"0 to {WAIT_S_MAX:g} s")
    return round(wait_s * 1_000)


def _path(job_id: str) -> str:
    if not _JOB_ID.fullmatch(job_id):
        raise InvalidInput(("job_id",), f"{job_id[:64]!r} is no id of a job", "such as job:0194f3…")
    return f"/v1/jobs/{job_id}"


def submitted(answer: Answer) -> Job:
    replayed, is_duplicate = answer.headers.get("Idempotency-Replayed") == "true", "Duplicate-Of" in answer.headers
    return read_job(answer.body, replayed=replayed, is_duplicate=is_duplicate)


def batch_of(answer: Answer) -> tuple[str, tuple[BatchResult, ...]]:
    return str(answer.body["batch"]), tuple(read_batch_result(one) for one in answer.body["results"])
