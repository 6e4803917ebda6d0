"""The answers of all shards as one, route by route; `hascheduler.shards.answers` asks for them.

Pages have one order in all shards, so one position is enough: each shard goes on behind it, and a merged page ends at
the nearest place up to which every shard has answered all. What another shard has beyond that is not returned yet. An
item counts only from the shard of its tenant: while a partition moves, the other one may have a copy of it.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel, TypeAdapter
from starlette.datastructures import QueryParams
from starlette.types import Scope

from hascheduler.api.jobs.errors import GROUPS_MAX
from hascheduler.api.ops.cluster import FailoversQuery
from hascheduler.api.routing.queries import NewestFirstQuery, PageQuery, place_text
from hascheduler.api.schedules.selection import ScheduleSort, cursor_of, place_of, trouble
from hascheduler.api.schedules.timeline import TimelineQuery, shown_load
from hascheduler.dispatch.schedules.load_ahead import Load, LoadAhead
from hascheduler.model.documents.verdict import verdict_id
from hascheduler.model.job import JobState
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.ports import ListPosition
from hascheduler.shards.all_that_match import change_jobs, change_schedules
from hascheduler.shards.answers import Body, Merge, cluster, failovers, merged, processors
from hascheduler.shards.layout import Layout

Key = tuple[Any, ...]
"""The place of an item in the order of a list."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_INTEGER = TypeAdapter(int)


def at_ms(text: str) -> int:
    """Return the instant in an answer, which may be beyond any calendar (``… ms``)."""
    return int(text[:-3]) if text.endswith(" ms") else (datetime.fromisoformat(text) - _EPOCH) // _MS


def limit_of(scope: Scope, query: type[BaseModel]) -> int:
    """Return the ``limit`` of a request that every shard has accepted."""
    given = QueryParams(scope["query_string"]).get("limit")
    return int(query.model_fields["limit"].default) if given is None else _INTEGER.validate_python(given)


def newest_first(next: str | None) -> Key | None:
    """Return the key of ``next`` in a list with the newest first; without an id it is before all of its instant."""
    position = NewestFirstQuery.model_construct(after=next).position()
    return None if position is None else (position.at_ms, position.id is None, position.id or "")


def newest_first_text(end: Key | None) -> str | None:
    return None if end is None else place_text(ListPosition(WallMs(end[0]), end[2] or None))


def pages_as_one(
    pages: Sequence[Sequence[tuple[Key, Body]]], ends: Sequence[Key | None], limit: int, *, descending: bool
) -> tuple[list[Body], Key | None]:
    """Return at most ``limit`` items, and the key after which to go on; None if there are no more.

    ``ends`` has the key up to which each page has all; None if there are no more in its shard.
    """
    nearest = [end for end in ends if end is not None]
    end = None if not nearest else max(nearest) if descending else min(nearest)
    items = dict(pair for page in pages for pair in page)  # an item that is just being copied may appear twice
    keys = sorted(items, reverse=descending)
    known = [key for key in keys if end is None or (key >= end if descending else key <= end)]
    if len(known) > limit:
        known, end = known[:limit], known[limit - 1]
    return [items[key] for key in known], end


def _pages(
    key: Callable[[Body], Key],
    tenant: Callable[[Body], object] = lambda _: None,
    *,
    query: type[BaseModel] = NewestFirstQuery,
    sort: ScheduleSort | None = None,
) -> Callable[[Layout, Sequence[Body], Scope], Body]:
    """Return the merge of pages with the newest first, or by a name or another ``sort`` of schedules."""
    place = newest_first if sort is None else partial(place_of, sort)
    text: Callable[[Any], str | None] = newest_first_text if sort is None else partial(cursor_of, sort)

    def combine(layout: Layout, pages: Sequence[Body], scope: Scope) -> Body:
        items, end = pages_as_one(
            [
                [(key(item), item) for item in page["items"] if _is_there(layout, tenant(item), index)]
                for index, page in enumerate(pages)
            ],
            [place(page["next"]) for page in pages],
            limit_of(scope, query),
            descending=sort is None,
        )
        whole = {**pages[0], "items": items, "next": text(end)}
        if "unreadable" in whole:
            unreadable = {each["id"]: each for page in pages for each in page["unreadable"]}
            # A list by name has a place for each; any other list shows each on the first page possible.
            is_by_name = sort is ScheduleSort.NAME
            shown = [each for id, each in unreadable.items() if not is_by_name or end is None or (0, id) <= end]
            whole["unreadable"] = shown
        return whole

    return combine


def _is_there(layout: Layout, tenant: object, index: int) -> bool:
    return not isinstance(tenant, str) or layout.index_of(tenant) == index


_by_name = partial(_pages, lambda item: (0, item["name"]), query=PageQuery, sort=ScheduleSort.NAME)


def _schedules(layout: Layout, pages: Sequence[Body], scope: Scope) -> Body:
    sort = ScheduleSort(QueryParams(scope["query_string"]).get("sort", ScheduleSort.NAME))

    def place(schedule: Body) -> Key:
        number, due_at = 0, schedule["next_due_at"]
        if sort is ScheduleSort.NEXT:
            number = LATEST_MS if due_at is None else at_ms(due_at)
        elif sort is ScheduleSort.TROUBLE:
            failing, ahead = schedule["failures_in_a_row"] > 0, schedule["ahead_until"] is not None
            number = trouble(failing=failing, late=schedule["late"], ahead=ahead, paused=schedule["paused"])
        return number, schedule["name"]

    return _pages(place, lambda each: each["job"]["tenant"], query=PageQuery, sort=sort)(layout, pages, scope)


def _recent(_: Layout, answers: Sequence[Body], scope: Scope) -> Body:
    items = {item["name"]: item for answer in answers for item in answer["items"]}
    asked = dict.fromkeys(QueryParams(scope["query_string"]).getlist("name"))
    return {"items": [items[name] for name in asked if name in items]}


def _verdict_key(verdict: Body) -> Key:
    # The id of a stored verdict orders those of one instant.
    return (at_ms(verdict["decided_at"]), False, verdict_id(verdict["schedule"], at_ms(verdict["nominal_at"])))


def _counts(*names: str) -> Merge:
    def combine(_: Layout, counts: Sequence[Body], scope: Scope) -> Body:
        total: dict[str, Any] = {name: sum(each[name] for each in counts) for name in ("matched", *names)}
        if "at_least" in counts[0]:
            at_least = {state for each in counts for state in each["at_least"]}
            total["at_least"] = [state for state in names if state in at_least]
        return {**total, "exact": all(each["exact"] for each in counts)}

    return merged(combine)


def _errors(_: Layout, answers: Sequence[Body], scope: Scope) -> Body:
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for group in (group for answer in answers for group in answer["groups"]):
        known = groups.setdefault((group["definition"], group["fault"]), {**group, "count": 0})
        newest = max(known, group, key=lambda each: at_ms(each["last_at"]))
        known |= {name: newest[name] for name in ("last_at", "job", "error")}
        known["first_at"] = min(known["first_at"], group["first_at"], key=at_ms)
        known["count"] += group["count"]
        # One may be cut: then it is the beginning of the other, and finds the errors of both.
        error = min(known["filter"].get("error") or "", group["filter"].get("error") or "", key=len) or None
        known["filter"] = {
            name: value if group["filter"].get(name) == value else None for name, value in known["filter"].items()
        } | {"error": error}
    ordered = sorted(
        groups.values(), key=lambda each: (-each["count"], -at_ms(each["last_at"]), each["definition"], each["fault"])
    )
    shown, others = ordered[:GROUPS_MAX], ordered[GROUPS_MAX:]
    left = [answer["others"] for answer in answers] + [{"groups": 1, "count": each["count"]} for each in others]
    return {
        "groups": shown,
        "others": {name: sum(each[name] for each in left) for name in ("groups", "count")},
        "examined": sum(answer["examined"] for answer in answers),
        "complete": all(answer["complete"] for answer in answers),
    }


def _timeline(layout: Layout, answers: Sequence[Body], scope: Scope) -> Body:
    rows = _by_name(query=TimelineQuery)(layout, answers, scope)
    return {**rows, "load": _load([answer["load"] for answer in answers])}


def _load(loads: Sequence[Body]) -> Body:
    """Return the load of all shards: each has its own processors, and all have the same limits of definitions."""
    from_ms = max(load["from_ms"] for load in loads)
    needed: dict[str | None, list[int]] = {}
    slots: dict[str | None, int] = {}
    for load in loads:
        past = (from_ms - load["from_ms"]) // load["bucket_ms"]  # a shard may have answered right before a bucket began
        for item in load["items"]:
            name, later = item["definition"], [*item["needed"][past:], *[0] * past]
            needed[name] = [mine + more for mine, more in zip(needed.get(name, [0] * len(later)), later, strict=True)]
            slots[name] = item["slots"] + slots.get(None, 0) if name is None else item["slots"]
    every, *capped = [Load(name, slots[name], each) for name, each in needed.items()]
    capped.sort(key=lambda load: (-max(load.needed) / load.slots, load.definition))
    left_out = sum(load["left_out"] for load in loads)
    common = min(len(load["used"]) for load in loads)
    used = [sum(each) for each in zip(*(load["used"][len(load["used"]) - common :] for load in loads), strict=True)]
    return shown_load(LoadAhead(from_ms, [every, *capped], left_out), used).model_dump(mode="json")


MERGED: Mapping[tuple[str, str], Merge] = {
    ("GET", "/v1/jobs"): merged(
        _pages(lambda job: (at_ms(job["submitted_at"]), False, job["id"]), lambda job: job["tenant"])
    ),
    ("GET", "/v1/jobs:counts"): _counts(*(state.value for state in JobState)),
    ("GET", "/v1/jobs:errors"): merged(_errors),
    ("GET", "/v1/schedules"): merged(_schedules),
    ("GET", "/v1/schedules:counts"): _counts("active", "paused", "ended", "failing", "late"),
    ("GET", "/v1/schedules:recent"): merged(_recent),
    ("GET", "/v1/verdicts"): merged(_pages(_verdict_key)),
    ("GET", "/v1/timeline"): merged(_timeline),
    ("GET", "/v1/processors"): merged(lambda _, answers, scope: processors(answers)),
    ("GET", "/v1/cluster"): cluster,
    ("GET", "/v1/cluster/failovers"): merged(
        lambda _, answers, scope: failovers(answers, limit_of(scope, FailoversQuery))
    ),
    **{("POST", f"/v1/jobs:{verb}"): change_jobs for verb in ("cancel", "reprioritize", "retry", "delete")},
    **{("POST", f"/v1/schedules:{verb}"): change_schedules for verb in ("pause", "resume", "reset", "trigger")},
}
