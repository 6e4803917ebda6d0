"""Stored documents: an encoded value is decoded back, and any other document is refused with the path."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.model.documents.fired_job import JobMaker, fired_job
from hascheduler.model.documents.job import decode_job, encode_job_ref, new_job_document
from hascheduler.model.documents.job_template import decode_template, encode_template
from hascheduler.model.documents.leadership import (
    decode_hold,
    decode_journal_head,
    decode_lease,
    encode_hold,
    encode_journal_head,
    encode_lease,
    journal_id,
)
from hascheduler.model.documents.lean_fields import LEAN_FIELDS, MIRRORED
from hascheduler.model.documents.processor import decode_processor, encode_processor
from hascheduler.model.documents.schedule import (
    NewSchedule,
    decode_schedule,
    encode_policy,
    encode_schedule_ref,
    new_schedule_document,
    with_leader_fields,
)
from hascheduler.model.documents.trigger import decode_trigger, encode_trigger, stored_zone
from hascheduler.model.documents.verdict import decode_verdict, verdict_document
from hascheduler.model.job import JobRef, JobState, NewJob, fire_job_id
from hascheduler.model.leadership import EntryKind, JournalHead, LeaseRecord
from hascheduler.model.limit_keys import OnDuplicate
from hascheduler.model.partition import Hold
from hascheduler.model.policy import Criterion
from hascheduler.model.processor import ProcessorRef
from hascheduler.model.resources import RESOURCE_NAMES_MAX, SLOTS, Resources, resources
from hascheduler.model.schema_version import SCHEMA_ID, SchemaVersion, decode_schema_version, encode_schema_version
from hascheduler.model.token import Role
from hascheduler.model.values.fields import ID_CHARACTERS_MAX, INTEGER_MAX, NAME_CHARACTERS_MAX
from hascheduler.model.values.instants import WallMs, parse_instant
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.calendar import Calendar, read_days
from hascheduler.schema.definition import ConflictScope, Definition, KeyLimit, RateLimit
from hascheduler.schema.lane import PRIORITY_MAX, Lane
from hascheduler.schema.noun import document_of, read_document
from hascheduler.schema.pause import StandingPause
from hascheduler.schema.replica import ReplicaStatus
from hascheduler.schema.retry import RetryPolicy
from hascheduler.schema.schedule import CatchUp, JobTemplate, Overlap, SchedulePolicy, ScheduleRef, TriggerPeriod
from hascheduler.schema.tenant import Tenant
from hascheduler.schema.token import Token
from hascheduler.schema.trigger import AnyOf, CalendarUse, Cron, Interval, Once, Times, Trigger, Window
from hascheduler.schema.uniqueness import Uniqueness
from tests.tiers import examples

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
INTEGER = st.integers(-INTEGER_MAX, INTEGER_MAX)
POSITIVE = st.integers(1, INTEGER_MAX)
WALL = INTEGER.map(WallMs)
RESOURCES: st.SearchStrategy[Resources] = st.dictionaries(
    NAME.filter(lambda name: name != SLOTS), POSITIVE, max_size=3
).map(resources)
JOBS = st.builds(
    JobRef, NAME, INTEGER, st.sampled_from(JobState), INTEGER, NAME, NAME, NAME, NAME, TEXT, INTEGER, NAME, WALL,
    INTEGER, st.none() | WALL, st.none() | NAME, st.none() | WALL, st.none() | WALL, st.booleans(), st.none() | WALL,
    st.none() | RESOURCES, INTEGER, st.none() | WALL, st.none() | WALL, st.none() | WALL,
    st.lists(NAME, max_size=3).map(tuple), st.booleans(), st.none() | WALL, INTEGER, INTEGER, st.none() | WALL,
    st.none() | st.lists(st.tuples(NAME, TEXT), max_size=2).map(tuple),
).filter(lambda job: job.id not in job.waits_for)  # fmt: skip
"""As they are read: no job waits for itself."""
PATTERNS = (
    st.builds(Interval, st.integers(1, INTEGER_MAX), WALL)
    | st.builds(Once, WALL)
    | st.builds(Cron, NAME, NAME)
    | st.builds(Times, st.lists(WALL, min_size=1, max_size=3, unique=True).map(lambda times: tuple(sorted(times))))
)
WINDOWS = st.builds(lambda from_ms, span_ms: Window(from_ms, WallMs(from_ms + span_ms)), st.integers(0, 9), st.just(5))
COUNT = st.integers(0, INTEGER_MAX)
USES = st.builds(
    CalendarUse, st.lists(NAME, max_size=2).map(tuple), st.lists(NAME, max_size=2).map(tuple), st.none() | NAME
)
TRIGGERS = st.builds(
    Trigger, PATTERNS, COUNT, st.none() | WALL, st.none() | WALL, st.none() | COUNT,
    st.lists(WINDOWS, max_size=2).map(tuple), st.none() | USES,
)  # fmt: skip
TEMPLATES = st.builds(
    JobTemplate, NAME, st.none() | NAME, NAME, NAME, TEXT, INTEGER, NAME, st.none() | RESOURCES, st.none() | INTEGER
)
POLICIES = st.builds(
    SchedulePolicy, INTEGER, st.sampled_from(CatchUp), INTEGER, st.sampled_from(Overlap), st.none() | INTEGER
)
TALLIES = st.builds(FireCounts, *[COUNT] * 7)
PAST = st.lists(st.builds(TriggerPeriod, TRIGGERS, WALL, WALL, st.booleans()), max_size=2).map(tuple)
SCHEDULES = st.builds(
    ScheduleRef, NAME, INTEGER, TRIGGERS, TEMPLATES, WALL, WALL, WALL, POLICIES, st.none() | WALL, PAST, TALLIES,
    INTEGER, st.none(), st.sampled_from([(), (("Europe/Paris", 3_600),), (("X", -1), ("Asia/Tokyo", 32_400))]),
    st.none() | WALL,
).filter(lambda schedule: schedule.template.target != schedule.name)  # fmt: skip
"""As they are read: a target that is the schedule's name is None."""
RUNS = st.builds(
    VerdictRun, NAME, st.sampled_from([v for v in Verdict if v is not Verdict.FIRED]), WALL, WALL, INTEGER,
    st.none() | NAME,
)  # fmt: skip
LIMITS = st.none() | st.builds(RateLimit, count=POSITIVE, per_ms=POSITIVE)
DEFINITIONS = st.builds(
    Definition, name=NAME, rev=COUNT, max_concurrency=st.none() | POSITIVE, default_cost_ms=COUNT,
    conflict_group=st.none() | NAME, tier=st.none() | POSITIVE, rate_limit=LIMITS, resources=RESOURCES,
    retry=st.builds(RetryPolicy, attempts_max=COUNT, backoff_ms=COUNT, backoff_factor=COUNT, backoff_max_ms=COUNT),
    timeout_ms=st.none() | POSITIVE, total_timeout_ms=st.none() | POSITIVE,
    conflict_scope=st.sampled_from(ConflictScope),
    owner=st.none() | NAME,
    key_limits=st.lists(
        st.builds(
            KeyLimit, key=st.sampled_from(["target", "payload.a.b", "label.c"]), max_concurrency=st.none() | POSITIVE,
            rate_limit=LIMITS,
        ),
        max_size=3, unique_by=lambda limit: limit.key,
    ).map(tuple),
    unique=st.none() | st.builds(
        Uniqueness, by=st.sampled_from([(), ("target",), ("payload.a.b", "label.c")]),
        on_duplicate=st.sampled_from(OnDuplicate), period_ms=st.none() | POSITIVE, max_wait_ms=st.none() | POSITIVE,
    ),
)  # fmt: skip
CRITERIA = st.permutations([criterion for criterion in Criterion if criterion is not Criterion.ARRIVAL]).flatmap(
    lambda order: st.integers(0, len(order)).map(lambda count: (*order[:count], Criterion.ARRIVAL))
)
STEPS = st.sampled_from([1, PRIORITY_MAX + 1]).flatmap(
    lambda count: st.lists(POSITIVE, min_size=count, max_size=count).map(tuple)
)
LANES = st.builds(
    Lane, name=NAME, rev=COUNT, weight=POSITIVE, promote_after_ms=STEPS, criteria=st.none() | CRITERIA,
    owner=st.none() | NAME,
)  # fmt: skip
DAYS = st.lists(
    st.sampled_from(["2030-12-24", "2030-12-24/2031-01-01", "1970-01-01", "2099-12-31", "--12-25", "--02-29"])
).map(read_days)
WEEKDAYS = st.sets(st.integers(0, 6)).map(lambda days: tuple(sorted(days)))
CALENDARS = st.builds(
    Calendar, name=NAME, rev=COUNT, weekdays=WEEKDAYS, include=DAYS, exclude=DAYS, owner=st.none() | NAME
)
TENANTS = st.builds(
    Tenant, name=NAME, rev=COUNT, max_running=st.none() | POSITIVE, max_pending=st.none() | POSITIVE,
    submit_rate=LIMITS, max_schedules=st.none() | POSITIVE, fire_rate=LIMITS, owner=st.none() | NAME,
)  # fmt: skip
PAUSES = st.builds(
    StandingPause, id=NAME, rev=INTEGER, since_ms=WALL, by=NAME, because=st.none() | NAME, schedules_only=st.booleans()
)
TOKENS = st.builds(
    Token, digest=NAME, id=NAME, name=NAME, role=st.sampled_from(Role), tenant=NAME, created_at_ms=WALL,
    created_by=NAME, expires_at_ms=st.none() | WALL, rev=COUNT, session_of=st.none() | NAME,
)  # fmt: skip
PROCESSORS = st.builds(
    ProcessorRef, NAME, NAME, NAME, st.frozensets(TEXT), INTEGER, INTEGER, st.booleans(), INTEGER, RESOURCES,
    st.none() | NAME, st.just("") | NAME,
)  # fmt: skip
LEASES = st.builds(LeaseRecord, NAME, TEXT, INTEGER, INTEGER, TEXT, WALL, WALL, INTEGER, INTEGER)
HEADS = st.builds(JournalHead, NAME, INTEGER, INTEGER, st.sampled_from(EntryKind), NAME, INTEGER)
REPLICAS = st.builds(
    ReplicaStatus, id=NAME, name=NAME, beat=INTEGER, started_at_ms=WALL, http_endpoint=TEXT, liveness_endpoint=TEXT,
    ready=st.booleans(), stream_lag_ms=st.none() | INTEGER, position=TEXT, digest=TEXT, quarantined=INTEGER,
    version=st.none() | NAME, reads=INTEGER, decision_lag_ms=st.none() | INTEGER, zone_data=st.none() | NAME,
    broker_accepting=st.none() | st.booleans(),
)  # fmt: skip
HOLDS = st.builds(Hold, NAME, POSITIVE, st.booleans(), st.booleans(), COUNT)
SCHEMAS = st.builds(SchemaVersion, INTEGER, INTEGER)

Decoder = Callable[[object, Any], Any]
DECODERS: dict[Collection, Decoder] = {
    Collection.JOBS: decode_job,
    Collection.SCHEDULES: decode_schedule,
    Collection.DEFINITIONS: partial(read_document, Definition),
    Collection.PROCESSORS: decode_processor,
    Collection.LEASES: decode_lease,
    Collection.JOURNAL: decode_journal_head,
    Collection.REPLICAS: partial(read_document, ReplicaStatus),
    Collection.LANES: partial(read_document, Lane),
    Collection.CALENDARS: partial(read_document, Calendar),
    Collection.TENANTS: partial(read_document, Tenant),
    Collection.TOKENS: partial(read_document, Token),
    Collection.PAUSES: partial(read_document, StandingPause),
    Collection.HOLDS: decode_hold,
    Collection.META: decode_schema_version,
}
NOUNS: dict[Collection, tuple[st.SearchStrategy[Any], Callable[[Any], dict[str, Any]], Callable[[Any], object]]] = {
    Collection.JOBS: (JOBS, encode_job_ref, lambda job: job.id),
    Collection.SCHEDULES: (SCHEDULES, encode_schedule_ref, lambda schedule: schedule.name),
    Collection.DEFINITIONS: (DEFINITIONS, document_of, lambda definition: definition.name),
    Collection.PROCESSORS: (PROCESSORS, encode_processor, lambda processor: processor.id),
    Collection.LEASES: (LEASES, encode_lease, lambda lease: lease.name),
    Collection.JOURNAL: (HEADS, encode_journal_head, lambda head: journal_id(head.name, head.seq)),
    Collection.REPLICAS: (REPLICAS, document_of, lambda replica: replica.id),
    Collection.CALENDARS: (CALENDARS, document_of, lambda calendar: calendar.name),
    Collection.LANES: (LANES, document_of, lambda lane: lane.name),
    Collection.TENANTS: (TENANTS, document_of, lambda tenant: tenant.name),
    Collection.PAUSES: (PAUSES, document_of, lambda pause: pause.id),
    Collection.HOLDS: (HOLDS, encode_hold, lambda hold: hold.key),
    Collection.TOKENS: (TOKENS, document_of, lambda token: token.digest),
    Collection.META: (SCHEMAS, encode_schema_version, lambda _: SCHEMA_ID),
}
OF_CHANGES_ALONE = {Collection.JOBS: {"finished_at_ms", "error", "last_error"}, Collection.SCHEDULES: {"missed"}}
"""Lean fields that no live noun has: the changes that bring them tell of an end, a failed try, or missed times."""
AT_TIMES = {Collection.SCHEDULES: {"cursor_offsets", "reset_at_ms"}}
"""Of schedules in zones, and of those that are to be reset."""
NOT_MIRRORED = {Collection.REPLICAS: {"indexes"}}
"""Stored fields that no mirror reads: `hascheduler migrate` does."""

# What BSON can hold, as far as a decoder could stumble over it.
STORED = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | TEXT | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("collection", MIRRORED)
@given(data=st.data())
@settings(max_examples=examples(50))
def test_what_is_stored_is_read_back(collection: Collection, data: st.DataObject) -> None:
    nouns, encode, id_of = NOUNS[collection]
    noun = data.draw(nouns)
    stored = encode(noun)
    lean = {name: value for name, value in stored.items() if name != "_id"}
    assert DECODERS[collection](id_of(noun), lean) == noun
    assert stored.get("_id", id_of(noun)) == id_of(noun)
    read = set(lean) - NOT_MIRRORED.get(collection, set())
    fields = set(LEAN_FIELDS[collection]) - OF_CHANGES_ALONE.get(collection, set())
    assert fields - AT_TIMES.get(collection, set()) <= read <= fields


@pytest.mark.parametrize("collection", MIRRORED)
@given(data=st.data())
@settings(max_examples=examples(200))
def test_a_hostile_document_is_read_or_refused(collection: Collection, data: st.DataObject) -> None:
    nouns, encode, id_of = NOUNS[collection]
    noun = data.draw(nouns)
    fields: dict[str, Any] = {name: value for name, value in encode(noun).items() if name != "_id"}
    for name in data.draw(st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=3, unique=True)):
        if data.draw(st.booleans()):
            fields[name] = data.draw(STORED)
        else:
            del fields[name]
    for name in ("trigger", "job", "policy", "rate_limit", "resources"):
        if isinstance(fields.get(name), dict) and data.draw(st.booleans()):
            fields[name] = {**fields[name], data.draw(st.sampled_from([*fields[name], "type"])): data.draw(STORED)}
    id = data.draw(st.just(id_of(noun)) | STORED)
    refusal: InvalidInput | None = None
    try:
        hash(DECODERS[collection](id, fields))
    except InvalidInput as error:
        refusal = error
    assert refusal is None or (refusal.path and len(str(refusal)) < 400)


OLD = ScheduleRef(
    "s", 1, Trigger(Once(WallMs(9))), JobTemplate("log", "t", "tenant", "default", "", 5, "queued"), WallMs(1),
    since_ms=WallMs(1), cursor_ms=WallMs(3),
)  # fmt: skip
WRONG: dict[Collection, list[tuple[str, object]]] = {
    Collection.JOBS: [
        ("rev", None), ("rev", 1.0), ("rev", True), ("rev", "1"), ("rev", 2**53), ("state", "done"), ("state", None),
        ("state", []), ("state", {}), ("attempt", -(2**63)), ("definition", ""), ("definition", 5), ("target", None),
        ("processor", ""), ("limit_keys", [["target"]]), ("limit_keys", [["target", 1]]), ("limit_keys", {}),
        ("not_before_ms", "2030-01-01T00:00:00Z"), ("cancel_requested_at_ms", 1.5), ("priority", None),
    ],
    Collection.DEFINITIONS: [
        ("tier", 0), ("conflict_group", ""), ("rate_limit", 5), ("default_cost_ms", "20s"), ("key_limits", {}),
        ("key_limits", [{"key": "name"}]), ("key_limits", [{"key": "target"}, {"key": "target"}]),
        ("key_limits", [{"key": "target", "max_concurrency": 0}]), ("unique", []), ("unique", {}),
        ("unique", {"by": ["name"], "on_duplicate": "replace"}), ("unique", {"by": [], "on_duplicate": "both"}),
        ("unique", {"by": ["target"] * 5, "on_duplicate": "replace"}),
        ("unique", {"by": [], "on_duplicate": "debounce", "period_ms": 0}), ("resources", {SLOTS: 1}),
        ("resources", []), ("resources", {f"r{n}": 1 for n in range(RESOURCE_NAMES_MAX + 1)}),
    ],
    Collection.LANES: [
        ("weight", 0), ("promote_after_ms", [1] * PRIORITY_MAX), ("promote_after_ms", [0]),
        ("promote_after_ms", 60_000), ("criteria", ["luck"]), ("criteria", "fair"), ("criteria", ["arrival", "tier"]),
    ],
    Collection.TENANTS: [("max_running", 0)],
    Collection.CALENDARS: [("weekdays", [7]), ("weekdays", None)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("collection", "field", "value"), [(collection, *wrong) for collection, rows in WRONG.items() for wrong in rows]
)
def test_a_wrong_field_is_named(collection: Collection, field: str, value: object) -> None:
    job = new_job_document(NewJob("j", "log", "t", None, "tenant", "default", "", 5, "queued", {}, WallMs(0)))
    other = {"rev": 1, "weight": 1, "weekdays": [], "include": [], "exclude": []}
    with pytest.raises(InvalidInput) as refusal:
        DECODERS[collection]("j", {**(job if collection is Collection.JOBS else other), field: value})
    assert refusal.value.path[0] == field


@given(st.sampled_from(Overlap), TEMPLATES, st.booleans(), st.integers(1, 10**12).map(WallMs))
def test_a_fired_job_is_what_the_insert_will_show(
    overlap: Overlap, template: JobTemplate, filled: bool, nominal_ms: WallMs
) -> None:
    made = NewSchedule(
        "s", Trigger(Once(nominal_ms)), template, {"of": "${nominal_ms}"}, {}, WallMs(0),
        SchedulePolicy(overlap=overlap), render=filled,
    )  # fmt: skip
    document = new_schedule_document(made)
    [job] = JobMaker("s", document).fired(nominal_ms)
    inserted = new_job_document(job)
    assert inserted["payload"] == {"of": str(nominal_ms) if filled else "${nominal_ms}"}
    assert fired_job(decode_schedule("s", document), nominal_ms) == decode_job(inserted["_id"], inserted)


@pytest.mark.parametrize(
    ("trigger", "at", "expected"),
    [
        (Trigger(Cron("0 0 * * *", "Asia/Tokyo")), "2026-10-31T15:00:00Z", "2026-11-01 00:00:00 +09:00 2026-10-31"),
        (
            Trigger(Cron("0 0 1 1 *", "Africa/Monrovia")),
            "1971-01-01T00:44:30Z",
            "1971-01-01 00:00:00 -00:44:30 1971-01-01",
        ),
        (Trigger(Interval(1_500, WallMs(0))), "2026-11-01T00:00:01.500Z", "2026-11-01 00:00:01 +00:00 2026-11-01"),
        (
            Trigger(
                AnyOf((Cron("0 0 * * *", "Asia/Tokyo"), Cron("0 12 * * *", "Asia/Tokyo"))),
                calendars=CalendarUse(("c",), timezone="Europe/Paris"),
            ),
            "2026-10-31T15:00:00Z",
            "2026-11-01 00:00:00 +09:00 2026-10-31",
        ),
        (Trigger(Cron("0 0 * * *", "No/Where")), "2026-10-31T15:00:00Z", "2026-10-31 15:00:00 +00:00 2026-10-31"),
    ],
)
def test_local_placeholders_are_those_of_the_zone_of_the_schedule(trigger: Trigger, at: str, expected: str) -> None:
    payload = "${local_date} ${local_time} ${local_offset} ${nominal_date}"
    document = new_schedule_document(
        NewSchedule("s", trigger, JobTemplate("d", None, "t", "l", "k", 5, "m"), payload, {}, WallMs(0), render=True)
    )
    [job] = JobMaker("s", document).fired(parse_instant(at))
    assert job.payload == expected
    assert stored_zone(document["trigger"]) == trigger.zone
    # As the leader reads it.
    fields = {name: value for name, value in document["trigger"].items() if name in ("timezone", "of", "trigger")}
    assert JobMaker("s", {**document, "trigger": fields}).fired(parse_instant(at)) == [job]


@pytest.mark.parametrize("change", [bool, float, lambda number: [number], lambda _: None])
def test_a_number_of_another_type_is_refused_although_an_equal_one_was_cached(change: Callable[[int], object]) -> None:
    template = encode_template(JobTemplate("log", None, "tenant", "default", "", 1, "queued"), "a")
    trigger = encode_trigger(Trigger(Interval(1, WallMs(0))))
    decode_template(template, "a")
    decode_trigger(trigger)
    with pytest.raises(InvalidInput) as refusal:
        decode_template({**template, "priority": change(1)}, "a")
    assert refusal.value.path == ("priority",)
    with pytest.raises(InvalidInput) as refusal:
        decode_trigger({**trigger, "every_ms": change(1)})
    assert refusal.value.path == ("trigger", "every_ms")


@given(SCHEDULES, SCHEDULES)
def test_the_leaders_fields_alone_are_decoded_as_in_the_whole_document(before: ScheduleRef, after: ScheduleRef) -> None:
    fields = encode_schedule_ref(after)
    written = {name: fields.get(name) for name in ("cursor_ms", "tally", "failures", "throttled", "cursor_offsets")}
    whole = decode_schedule(before.name, {**encode_schedule_ref(before), **written})
    assert with_leader_fields(before, written) == whole


@pytest.mark.parametrize(
    ("field", "value"), [("tally", [0.0] * 6), ("policy", {**encode_policy(OLD.policy), "grace_ms": 60_000.0})]
)
def test_a_float_is_no_count_even_where_it_equals_one(field: str, value: object) -> None:
    with pytest.raises(InvalidInput):
        decode_schedule(OLD.name, {**encode_schedule_ref(OLD), field: value})


@given(RUNS)
def test_a_verdict_is_read_as_it_was_written(run: VerdictRun) -> None:
    assert decode_verdict(verdict_document(run, WallMs(5))) == run


def test_the_longest_name_of_a_schedule_leaves_room_for_the_ids_of_its_jobs() -> None:
    assert len(fire_job_id("s" * NAME_CHARACTERS_MAX, INTEGER_MAX)) <= ID_CHARACTERS_MAX
    stored = encode_schedule_ref(OLD)
    assert decode_schedule("s" * NAME_CHARACTERS_MAX, stored).rev == 1
    with pytest.raises(InvalidInput, match="characters long"):
        decode_schedule("s" * (NAME_CHARACTERS_MAX + 1), stored)
