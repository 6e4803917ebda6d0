"""Stored schedules, their parts, and the bases of decisions about them.

The API writes ``{_id: name, v, rev, trigger, since_ms, past, policy, paused_at_ms, paused_because, job, payload,
render, labels, on_failure, created_at_ms}``, each write raising ``rev``. All of a graph of jobs is in ``job`` (see
`job_template`), except for ``payloads`` by ref; then ``payload`` is null, and ``render`` is true if any of them is
rendered.

The leader writes ``{cursor_ms, tally, failures, throttled, unstorable, missed, cursor_offsets}``. ``unstorable``, 0 if
absent, is only shown: no mirror holds it. ``missed`` is written if a move of the cursor counts times as missed, with
the first, the last and the number of them. It stays until the next such move: a change of the field is the signal.
``cursor_offsets``, a text such as ``1785600000000 Europe/Paris=7200``, begins with its cursor: 0.2.0 moves the cursor
without it, and then it is void. ``reset_at_ms``, absent or null if there is none, is a request of the API that the
leader carries out (`hascheduler.dispatch.schedules.edits`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.documents.job_template import decode_jobs, encode_jobs
from hascheduler.model.documents.trigger import decode_trigger, encode_trigger
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.fields import (
    NAME_CHARACTERS_MAX,
    Document,
    as_document,
    identifier,
    integer,
    is_integer,
    not_negative,
    shared_instant,
)
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts, MissedTimes
from hascheduler.schema.schedule import (
    CATCH_UP_MAX_DEFAULT,
    DEFAULT_POLICY,
    GRACE_MS_DEFAULT,
    Basis,
    CatchUp,
    JobGraph,
    JobTemplate,
    Overlap,
    SchedulePolicy,
    ScheduleRef,
    TriggerPeriod,
    ZoneOffsets,
)
from hascheduler.schema.trigger import Trigger

_SHARED_MAX = 4_096
_DAY_S = 86_400
_OFFSET = re.compile(r"-?[0-9]{1,5}", re.ASCII)

SCHEDULE_FIELDS = (
    "v", "rev", "trigger", "since_ms", "past", "policy", "paused_at_ms", "job", "created_at_ms",
    "cursor_ms", "tally", "failures", "throttled", "missed", "cursor_offsets", "reset_at_ms",
)  # fmt: skip
"""The fields that a mirror needs."""

TOO_MANY_FAILURES = "{} of its jobs failed in a row"
"""The ``paused_because`` of a schedule that the leader paused."""

LEADER_FIELDS = frozenset({"cursor_ms", "tally", "failures", "throttled", "missed", "cursor_offsets"})
"""The fields whose writing is not an edit, so ``rev`` stays."""


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule as it is created at ``now``: its nominal times begin after that."""

    name: str
    trigger: Trigger
    template: JobTemplate
    payload: Any
    labels: Mapping[str, str]
    now: WallMs
    policy: SchedulePolicy = DEFAULT_POLICY
    render: bool = False
    paused: bool = False
    graph: JobGraph | None = None
    payloads: Mapping[str, Any] | None = None
    on_failure: str | None = None


def new_schedule_document(schedule: NewSchedule) -> dict[str, Any]:
    now, paused_at_ms = schedule.now, schedule.now if schedule.paused else None
    ref = ScheduleRef(
        schedule.name, 1, schedule.trigger, schedule.template, now, now, now, schedule.policy, paused_at_ms,
        graph=schedule.graph,
    )  # fmt: skip
    if_given = {"payloads": schedule.payloads, "on_failure": schedule.on_failure}
    return {
        "_id": schedule.name,
        **encode_schedule_ref(ref),
        "paused_because": None,
        "payload": schedule.payload,
        "render": schedule.render,
        "labels": dict(schedule.labels),
        **{name: value for name, value in if_given.items() if value is not None},
    }


def decode_schedule(id: object, fields: Document) -> ScheduleRef:
    require_known_version(fields)
    name = identifier(id, longest=NAME_CHARACTERS_MAX)
    paused_at_ms, reset_at_ms = fields.get("paused_at_ms"), fields.get("reset_at_ms")
    past = fields.get("past")
    created_at_ms = shared_instant(integer(fields, "created_at_ms"))
    template, graph = decode_jobs(fields.get("job"), name)
    # By position: there may be a million of them.
    return ScheduleRef(
        name,
        integer(fields, "rev"),
        decode_trigger(fields.get("trigger")),
        template,
        created_at_ms,
        shared_instant(integer(fields, "since_ms", default=created_at_ms)),
        shared_instant(integer(fields, "cursor_ms")),
        decode_policy(fields.get("policy")),
        None if paused_at_ms is None else WallMs(integer(fields, "paused_at_ms")),
        _decode_past(past) if past else (),
        decode_fire_counts(fields.get("tally"), throttled=not_negative(fields, "throttled", default=0)),
        integer(fields, "failures", default=0),
        graph,
        decode_offsets(fields),
        None if reset_at_ms is None else WallMs(integer(fields, "reset_at_ms")),
    )


def encode_schedule_ref(schedule: ScheduleRef) -> dict[str, Any]:
    """Return the lean fields of a schedule, as `decode_schedule` reads them."""
    stored = {
        **encode_schedule_edit(schedule),
        "v": WRITTEN_VERSION,
        "rev": schedule.rev,
        "job": encode_jobs(schedule.template, schedule.graph, schedule.name),
        "created_at_ms": schedule.created_at_ms,
        "cursor_ms": schedule.cursor_ms,
        "tally": encode_fire_counts(schedule.tally),
        "failures": schedule.failures,
        "throttled": schedule.tally.throttled,
    }
    reset = {} if schedule.reset_at_ms is None else {"reset_at_ms": schedule.reset_at_ms}
    return stored | encode_offsets(schedule.cursor_ms, schedule.offsets) | reset


def encode_reset(schedule: ScheduleRef) -> dict[str, Any]:
    """Return the fields written by the reset that resulted in ``schedule``."""
    return {
        **encode_schedule_edit(schedule),
        "cursor_ms": schedule.cursor_ms,
        "tally": encode_fire_counts(schedule.tally),
        "throttled": schedule.tally.throttled,
        "missed": None,
        "reset_at_ms": None,
    }


def with_leader_fields(schedule: ScheduleRef, fields: Document) -> ScheduleRef:
    """Return ``schedule`` after the leader wrote some of `LEADER_FIELDS`; other fields are not decoded again."""
    # By position, as `replace` takes three times as long, for each fire in each replica.
    return ScheduleRef(
        schedule.name,
        schedule.rev,
        schedule.trigger,
        schedule.template,
        schedule.created_at_ms,
        schedule.since_ms,
        shared_instant(integer(fields, "cursor_ms", default=schedule.cursor_ms)),
        schedule.policy,
        schedule.paused_at_ms,
        schedule.past,
        _with_counts(schedule.tally, fields),
        integer(fields, "failures", default=schedule.failures),
        schedule.graph,
        decode_offsets(fields) if "cursor_ms" in fields else schedule.offsets,
        schedule.reset_at_ms,
    )


def encode_schedule_edit(schedule: ScheduleRef) -> dict[str, Any]:
    """Return the fields that an edit of the times or the policy of a schedule writes."""
    return {
        "trigger": encode_trigger(schedule.trigger),
        "since_ms": schedule.since_ms,
        "past": [_encode_period(stretch) for stretch in schedule.past],
        "policy": encode_policy(schedule.policy),
        "paused_at_ms": schedule.paused_at_ms,
    }


# Its parts


def encode_policy(policy: SchedulePolicy) -> dict[str, Any]:
    return {
        "grace_ms": policy.grace_ms,
        "catch_up": policy.catch_up.value,
        "catch_up_max": policy.catch_up_max,
        "overlap": policy.overlap.value,
        "pause_after_failures": policy.pause_after_failures,
    }


_DEFAULT_POLICY_STORED = encode_policy(DEFAULT_POLICY)


def decode_policy(stored: object) -> SchedulePolicy:
    """Return the policy; the default one if nothing is stored."""
    if stored is None:
        return DEFAULT_POLICY
    fields = as_document(stored)
    if fields is None:
        raise InvalidInput(("policy",), "not an object")
    # The usual case. A float that equals an integer is not an integer.
    if fields == _DEFAULT_POLICY_STORED and type(fields["grace_ms"]) is type(fields["catch_up_max"]) is int:
        return DEFAULT_POLICY
    failures = fields.get("pause_after_failures")
    return _shared_policy(
        integer(fields, "grace_ms", default=GRACE_MS_DEFAULT),
        _choice(CatchUp, fields, "catch_up", CatchUp.LATEST),
        integer(fields, "catch_up_max", default=CATCH_UP_MAX_DEFAULT),
        _choice(Overlap, fields, "overlap", Overlap.ALLOW),
        None if failures is None else integer(fields, "pause_after_failures"),
    )


_STORED_APART = frozenset({"throttled"})
"""Counts that 0.2.0 does not know (it would refuse a longer list): each is a field that writes add to."""
_COUNT_FIELDS = tuple(field.name for field in dataclass_fields(FireCounts) if field.name not in _STORED_APART)


def encode_fire_counts(counts: FireCounts) -> list[int]:
    """Return the counts in the order of `FireCounts`, without those that are stored apart."""
    return [getattr(counts, name) for name in _COUNT_FIELDS]


def decode_fire_counts(value: object, *, throttled: int = 0) -> FireCounts:
    if value is None:
        return FireCounts(throttled=throttled) if throttled else NOTHING_DECIDED
    if not isinstance(value, list) or len(value) != len(_COUNT_FIELDS) or not all(isinstance(n, int) for n in value):
        raise InvalidInput(
            ("tally",), f"{str(value)[:64]!r}", f"the {len(_COUNT_FIELDS)} counts {', '.join(_COUNT_FIELDS)}"
        )
    return FireCounts(*[*value, throttled]) if throttled or any(value) else NOTHING_DECIDED


def _with_counts(counts: FireCounts, fields: Document) -> FireCounts:
    """Return ``counts`` after the leader wrote some of them."""
    throttled = not_negative(fields, "throttled", default=counts.throttled)
    if "tally" in fields:
        return decode_fire_counts(fields["tally"], throttled=throttled)
    return counts if throttled == counts.throttled else replace(counts, throttled=throttled)


def encode_offsets(cursor_ms: int, offsets: ZoneOffsets) -> dict[str, str]:
    """Return the field for the offsets at that cursor; no field if there are none."""
    return {"cursor_offsets": f"{cursor_ms} {offsets_text(offsets)}"} if offsets else {}


def decode_offsets(fields: Document) -> ZoneOffsets:
    """Return the offsets at the cursor among ``fields``; none if they are of another cursor, or can't be read."""
    stored = fields.get("cursor_offsets")
    if not isinstance(stored, str):
        return ()
    cursor, _, text = stored.partition(" ")
    return read_offsets(text) if cursor == f"{fields.get('cursor_ms')}" else ()


def offsets_text(offsets: ZoneOffsets) -> str:
    """Return ``Europe/Paris=7200 Asia/Tokyo=32400``; empty if there are none."""
    return " ".join([f"{zone}={offset_s}" for zone, offset_s in offsets])


@lru_cache(_SHARED_MAX)
def read_offsets(text: str) -> ZoneOffsets:
    """Read the result of `offsets_text`, as one object for equal texts; anything else reads as none."""
    found = []
    for pair in text.split(" "):
        zone, _, offset = pair.partition("=")
        if not _OFFSET.fullmatch(offset) or abs(int(offset)) >= _DAY_S:
            return ()
        found.append((zone, int(offset)))
    return tuple(found)


def encode_missed(missed: MissedTimes) -> list[int]:
    return [missed.first_ms, missed.last_ms, missed.count]


def decode_missed(value: object) -> MissedTimes | None:
    """Return the times missed in the newest cursor move that counted any; None if nothing readable is stored."""
    if not isinstance(value, list) or len(value) != 3 or not all(map(is_integer, value)):
        return None
    missed = MissedTimes(*value)
    return missed if 0 <= missed.first_ms <= missed.last_ms < LATEST_MS and missed.count > 0 else None


def unstorable_of(fields: Document) -> int:
    """Return how many of the nominal times that the tally counts as fired have no job, because it can't be stored."""
    count = fields.get("unstorable")
    return count if is_integer(count) else 0


def encode_basis(basis: Basis) -> list[int | None]:
    return [basis.cursor_ms, basis.since_ms, basis.paused_at_ms]


def decode_basis(value: object) -> Basis:
    match value:
        # Not `(int() | None) as paused_at_ms`: compiled, that does not bind None.
        case [int(cursor_ms), int(since_ms), None]:
            return Basis(WallMs(cursor_ms), WallMs(since_ms), None)
        case [int(cursor_ms), int(since_ms), int(paused_at_ms)]:
            return Basis(WallMs(cursor_ms), WallMs(since_ms), WallMs(paused_at_ms))
        case _:
            raise InvalidInput(("basis",), f"{str(value)[:64]!r}", "[cursor_ms, since_ms, paused_at_ms]")


def _encode_period(stretch: TriggerPeriod) -> dict[str, Any]:
    return {
        "trigger": encode_trigger(stretch.trigger),
        "since_ms": stretch.since_ms,
        "through_ms": stretch.through_ms,
        "paused": stretch.paused,
    }


def _decode_past(value: object) -> tuple[TriggerPeriod, ...]:
    if not isinstance(value, list) or not all(isinstance(stretch, Mapping) for stretch in value):
        raise InvalidInput(("past",), "not a list of objects")
    return tuple(
        TriggerPeriod(
            decode_trigger(stretch.get("trigger")),
            WallMs(integer(stretch, "since_ms")),
            WallMs(integer(stretch, "through_ms")),
            bool(stretch.get("paused")),
        )
        for stretch in value
    )


@lru_cache(_SHARED_MAX)
def _shared_policy(
    grace_ms: int, catch_up: CatchUp, catch_up_max: int, overlap: Overlap, pause_after_failures: int | None
) -> SchedulePolicy:
    return SchedulePolicy(grace_ms, catch_up, catch_up_max, overlap, pause_after_failures)


def _choice(kind: Any, fields: Document, name: str, default: Any) -> Any:
    value = fields.get(name, default)
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(("policy", name), f"{str(value)[:64]!r} is unknown", " or ".join(kind)) from None
