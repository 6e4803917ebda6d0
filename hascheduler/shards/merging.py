"""The answers of all shards as one, route by route: see `hascheduler.shards.answers` for how they are asked.

Pages have one order in all shards, so one position is enough: each shard goes on behind it, and a merged page ends at
the nearest place up to which every shard has told all. What lies beyond that in another shard can't be given yet. An
item counts only from the shard that its tenant is in: while a partition moves, the other one may have a copy of it.
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
from hascheduler.api.schedules.timeline import TimelineQuery, shown_load
from hascheduler.dispatch.schedules.load_ahead import Load, LoadAhead
from hascheduler.model.documents.verdict import verdict_id
from hascheduler.model.job import JobState
from hascheduler.model.partition import partition_of
from hascheduler.model.values.instants import WallMs
from hascheduler.ports import ListPosition
from hascheduler.shards.all_that_match import change_jobs, change_schedules
from hascheduler.shards.answers import Body, Merge, merged
from hascheduler.shards.layout import Layout
from hascheduler.shards.overview import cluster, failovers, processors

Key = tuple[Any, ...]
"""Where an item stands in the order of a list: keys are compared as they are."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_INTEGER = TypeAdapter(int)


def at_ms(text: str) -> int:
    """Return the instant that an answer tells; also one that no calendar has, or that no request may name."""
    return int(text[:-3]) if text.endswith(" ms") else (datetime.fromisoformat(text) - _EPOCH) // _MS


def limit_of(scope: Scope, query: type[BaseModel]) -> int:
    """Return the ``limit`` of a request that every shard has accepted."""
    given = QueryParams(scope["query_string"]).get("limit")
    return int(query.model_fields["limit"].default) if given is None else _INTEGER.validate_python(given)


# Pages


def newest_first(next: str | None) -> Key | None:
    """Return the key of ``next`` in a list that has the newest first. A position without an id is before all of its
    instant."""
    position = NewestFirstQuery.model_construct(after=next).position()
    return None if position is None else (position.at_ms, position.id is None, position.id or "")


def newest_first_text(end: Key | None) -> str | None:
    """Return ``next`` for a page that ends there."""
    return None if end is None else place_text(ListPosition(WallMs(end[0]), end[2] or None))


def pages_as_one(
    pages: Sequence[Sequence[tuple[Key, Body]]], ends: Sequence[Key | None], limit: int, *, descending: bool
) -> tuple[list[Body], Key | None]:
    """Return at most ``limit`` items, and the key after which to go on; None: there are no more. ``ends`` has, for each
    page, up to where it has told all; None: there are no more in that shard."""
    nearest = [end for end in ends if end is not None]
    end = None if not nearest else max(nearest) if descending else min(nearest)
    items = dict(pair for page in pages for pair in page)  # one that is copied this moment may be there twice
    keys = sorted(items, reverse=descending)
    known = [key for key in keys if end is None or (key >= end if descending else key <= end)]
    if len(known) > limit:
        known, end = known[:limit], known[limit - 1]
    return [items[key] for key in known], end


def _page(
    key: Callable[[Body], Key],
    tenant: Callable[[Body], object],
    *,
    query: type[BaseModel] = PageQuery,
    position: Callable[[str | None], Key | None],
    text: Callable[[Key | None], str | None],
    descending: bool,
) -> Callable[[Layout, Sequence[Body], Scope], Body]:
    def combine(layout: Layout, pages: Sequence[Body], scope: Scope) -> Body:
        items, end = pages_as_one(
            [
                [(key(item), item) for item in page["items"] if _is_there(layout, tenant(item), index)]
                for index, page in enumerate(pages)
            ],
            [position(page["next"]) for page in pages],
            limit_of(scope, query),
            descending=descending,
        )
        whole = {**pages[0], "items": items, "next": text(end)}
        if "unreadable" in whole:
            unreadable = {each["id"]: each for page in pages for each in page["unreadable"]}
            # Of a list by name they have a place in the order; another one tells each with the first page that it can.
            shown = [each for id, each in unreadable.items() if descending or end is None or (id,) <= end]
            whole["unreadable"] = shown
        return whole

    return combine


def _is_there(layout: Layout, tenant: object, index: int) -> bool:
    return not isinstance(tenant, str) or layout.shard_of[partition_of(tenant)] == index


_newest = partial(_page, query=NewestFirstQuery, position=newest_first, text=newest_first_text, descending=True)
_by_name = partial(
    _page,
    key=lambda item: (item["name"],),
    position=lambda name: None if name is None else (name,),
    text=lambda end: None if end is None else str(end[0]),
    descending=False,
)


def _verdict_key(verdict: Body) -> Key:
    # As the id of a stored verdict, which orders those of one instant.
    return (at_ms(verdict["decided_at"]), False, verdict_id(verdict["schedule"], at_ms(verdict["nominal_at"])))


# Sums


def _job_counts(_: Layout, counts: Sequence[Body], scope: Scope) -> Body:
    at_least = {state for each in counts for state in each["at_least"]}
    sums = _sums(counts, "matched", *(state.value for state in JobState))
    return {**sums, "at_least": [state.value for state in JobState if state.value in at_least]}


def _schedule_counts(_: Layout, counts: Sequence[Body], scope: Scope) -> Body:
    return _sums(counts, "matched", "active", "paused", "ended")


def _sums(counts: Sequence[Body], *names: str) -> dict[str, Any]:
    return {
        **{name: sum(each[name] for each in counts) for name in names},
        "exact": all(each["exact"] for each in counts),
    }


def _errors(_: Layout, answers: Sequence[Body], scope: Scope) -> Body:
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for group in (group for answer in answers for group in answer["groups"]):
        known = groups.setdefault((group["definition"], group["fault"]), {**group, "count": 0})
        newest = max(known, group, key=lambda each: at_ms(each["last_at"]))
        known |= {
            **{name: newest[name] for name in ("last_at", "job", "error")},
            "first_at": min(known["first_at"], group["first_at"], key=at_ms),
            "count": known["count"] + group["count"],
            "filter": {
                name: value if group["filter"][name] == value else None for name, value in known["filter"].items()
            },
        }
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


# The timeline


def _timeline(layout: Layout, answers: Sequence[Body], scope: Scope) -> Body:
    rows = _by_name(tenant=lambda _: None, query=TimelineQuery)(layout, answers, scope)
    return {**rows, "load": _load([answer["load"] for answer in answers])}


def _load(loads: Sequence[Body]) -> Body:
    """Each shard has its own processors, and all of them the same limits of definitions."""
    from_ms = max(load["from_ms"] for load in loads)
    needed: dict[str | None, list[int]] = {}
    slots: dict[str | None, int] = {}
    for load in loads:
        past = (from_ms - load["from_ms"]) // load["bucket_ms"]  # one that was asked right before a bucket began
        for item in load["items"]:
            name, later = item["definition"], [*item["needed"][past:], *[0] * past]
            needed[name] = [mine + more for mine, more in zip(needed.get(name, [0] * len(later)), later, strict=True)]
            slots[name] = item["slots"] + slots.get(None, 0) if name is None else item["slots"]
    every, *capped = [Load(name, slots[name], each) for name, each in needed.items()]
    capped.sort(key=lambda load: (-max(load.needed) / load.slots, load.definition))
    left_out = sum(load["left_out"] for load in loads)
    return shown_load(LoadAhead(from_ms, [every, *capped], left_out)).model_dump(mode="json")


MERGED: Mapping[tuple[str, str], Merge] = {
    ("GET", "/v1/jobs"): merged(
        _newest(lambda job: (at_ms(job["submitted_at"]), False, job["id"]), lambda job: job["tenant"])
    ),
    ("GET", "/v1/jobs:counts"): merged(_job_counts),
    ("GET", "/v1/jobs:errors"): merged(_errors),
    ("GET", "/v1/schedules"): merged(_by_name(tenant=lambda schedule: schedule["job"]["tenant"])),
    ("GET", "/v1/schedules:counts"): merged(_schedule_counts),
    ("GET", "/v1/verdicts"): merged(_newest(_verdict_key, lambda _: None)),
    ("GET", "/v1/timeline"): merged(_timeline),
    ("GET", "/v1/processors"): merged(processors),
    ("GET", "/v1/cluster"): cluster,
    ("GET", "/v1/cluster/failovers"): merged(
        lambda _, answers, scope: failovers(answers, limit_of(scope, FailoversQuery))
    ),
    **{("POST", f"/v1/jobs:{verb}"): change_jobs for verb in ("cancel", "reprioritize", "retry")},
    **{("POST", f"/v1/schedules:{verb}"): change_schedules for verb in ("pause", "resume", "reset", "trigger")},
}
