"""Documents name their form; one of an unknown form is quarantined, and never read as another form."""

from collections.abc import Callable
from typing import Any

import bson
import pytest

from hascheduler.errors import InvalidInput
from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.calendar import decode_calendar, encode_calendar
from hascheduler.model.documents.definition import decode_definition, encode_definition
from hascheduler.model.documents.job import decode_job, new_job_document
from hascheduler.model.documents.journal import decode_journal_head, encode_journal_head
from hascheduler.model.documents.lane import decode_lane, encode_lane
from hascheduler.model.documents.lean_fields import LEAN_FIELDS, MIRRORED
from hascheduler.model.documents.lease import decode_lease, encode_lease
from hascheduler.model.documents.pause import decode_pause, encode_pause
from hascheduler.model.documents.processor import decode_processor, encode_processor
from hascheduler.model.documents.replica import decode_replica, encode_replica
from hascheduler.model.documents.routing import decode_routing, encode_routing
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.documents.share import decode_share, decode_shared_cap, encode_share, encode_shared_cap
from hascheduler.model.documents.tenant import decode_tenant, encode_tenant
from hascheduler.model.documents.token import decode_token, encode_token
from hascheduler.model.documents.verdict import decode_verdict, verdict_document
from hascheduler.model.job_graph import graph_order
from hascheduler.model.journal import EntryKind, JournalHead
from hascheduler.model.routing import Routing
from hascheduler.model.schedule import GraphJob, JobGraph
from hascheduler.model.schema_version import NEWEST_VERSION, SchemaVersion, encode_schema_version, why_unreadable
from hascheduler.model.share import Share, SharedCap
from hascheduler.model.trigger import AnyOf, Cron, Interval, Trigger
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from tests.factories import (
    NOW,
    make_calendar,
    make_definition,
    make_job,
    make_lane,
    make_lease,
    make_pause,
    make_processor,
    make_replica,
    make_schedule,
    make_template,
    make_tenant,
    make_token,
)
from tests.tiers import spread

Documents = dict[Collection, tuple[dict[str, Any], Callable[[dict[str, Any]], object]]]
HEAD = JournalHead("default", 1, 1, EntryKind.DECISIONS, "r1", 0)
RUN = VerdictRun("tick", Verdict.MISSED, NOW, NOW, 1)
DOCUMENTS: Documents = {
    Collection.JOBS: (new_job_document(make_job()), lambda stored: decode_job(stored["_id"], stored)),
    Collection.SCHEDULES: (make_schedule(), lambda stored: decode_schedule(stored["_id"], stored)),
    Collection.DEFINITIONS: (
        encode_definition(make_definition()),
        lambda stored: decode_definition(stored["_id"], stored),
    ),
    Collection.LANES: (
        encode_lane(make_lane()),
        lambda stored: decode_lane(stored["_id"], stored),
    ),
    Collection.TENANTS: (
        encode_tenant(make_tenant()),
        lambda stored: decode_tenant(stored["_id"], stored),
    ),
    Collection.CALENDARS: (
        encode_calendar(make_calendar()),
        lambda stored: decode_calendar(stored["_id"], stored),
    ),
    Collection.PAUSES: (
        encode_pause(make_pause()),
        lambda stored: decode_pause(stored["_id"], stored),
    ),
    Collection.SHARES: (encode_share(Share("all", 1, 2)), lambda stored: decode_share(stored["_id"], stored)),
    Collection.ROUTING: (encode_routing(Routing.even(["default", "0001"])), decode_routing),
    Collection.CAPS: (encode_shared_cap(SharedCap.even("all", 3, 2)), decode_shared_cap),
    Collection.PROCESSORS: (
        encode_processor(make_processor()),
        lambda stored: decode_processor(stored["_id"], stored),
    ),
    Collection.LEASES: (
        encode_lease(make_lease()),
        lambda stored: decode_lease(stored["_id"], stored),
    ),
    Collection.JOURNAL: (
        encode_journal_head(HEAD),
        lambda stored: decode_journal_head(stored["_id"], stored),
    ),
    Collection.REPLICAS: (
        encode_replica(make_replica()),
        lambda stored: decode_replica(stored["_id"], stored),
    ),
    Collection.TOKENS: (encode_token(make_token()), lambda stored: decode_token(stored["_id"], stored)),
    Collection.VERDICTS: (verdict_document(RUN, NOW), decode_verdict),
}
SAYS_ITSELF = {Collection.META}
"""It holds the version, and every release must be able to read it."""


def test_every_mirrored_collection_has_an_example() -> None:
    assert set(MIRRORED) - SAYS_ITSELF <= set(DOCUMENTS)


@pytest.mark.parametrize("collection", DOCUMENTS)
def test_a_document_names_its_form_and_is_read_in_it(collection: Collection) -> None:
    stored, decode = DOCUMENTS[collection]
    assert stored["v"] == NEWEST_VERSION
    unsaid = {name: value for name, value in stored.items() if name != "v"}
    assert decode(stored) == decode(unsaid) == decode({**stored, "v": bson.Int64(1)})


@pytest.mark.parametrize("form", spread([NEWEST_VERSION + 1, 0, -1, "1", 1.0, True, None, [], {}], check=3))
@pytest.mark.parametrize("collection", DOCUMENTS)
def test_a_document_of_an_unknown_form_is_refused(collection: Collection, form: object) -> None:
    stored, decode = DOCUMENTS[collection]
    with pytest.raises(InvalidInput) as refusal:
        decode({**stored, "v": form})
    assert refusal.value.path == ("v",)


@pytest.mark.parametrize("collection", sorted(set(MIRRORED) - SAYS_ITSELF - {Collection.JOURNAL}))
def test_a_mirror_quarantines_an_unknown_form_until_it_is_a_known_one(collection: Collection) -> None:
    stored, _ = DOCUMENTS[collection]
    id = stored["_id"]
    fields = {name: stored[name] for name in LEAN_FIELDS[collection] if name in stored}
    mirror = Mirror()
    mirror.fold([Change(collection, Operation.PUT, id, fields)])
    assert set(mirror.nouns(collection)) == {id}
    mirror.fold([Change(collection, Operation.PUT, id, {**fields, "v": NEWEST_VERSION + 1})])
    assert not mirror.nouns(collection)
    assert "form 2 is not known to this release; expected 1" in mirror.quarantine[collection, id]
    mirror.fold([Change(collection, Operation.PUT, id, fields)])
    assert set(mirror.nouns(collection)) == {id}
    assert not mirror.quarantine


_PARTS: list[dict[str, Any]] = [
    {"type": "cron", "expression": "0 9 * * *", "timezone": "UTC"},
    {"type": "interval", "every_ms": 60_000, "anchor_ms": 0},
]


@pytest.mark.parametrize(
    "of",
    [
        [*_PARTS, {"type": "of a later release"}],
        [*_PARTS, {"type": "any", "of": _PARTS}],
        [*_PARTS, {"type": "calendars", "trigger": _PARTS[0], "only": ["a"], "except": []}],
        [*_PARTS, "0 9 * * *"],
        _PARTS[:1],
        _PARTS * 6,
        {},
        None,
    ],
)
def test_a_trigger_of_several_patterns_is_set_aside_if_one_of_them_is_unknown(of: object) -> None:
    mirror = Mirror()
    stored = make_schedule(trigger=Trigger(AnyOf((Cron("0 9 * * *"), Interval(60_000, WallMs(0))))))
    assert stored["trigger"] == {"type": "any", "of": _PARTS}
    fields = {name: stored[name] for name in LEAN_FIELDS[Collection.SCHEDULES] if name in stored}
    id = stored["_id"]
    mirror.fold([Change(Collection.SCHEDULES, Operation.PUT, id, {**fields, "trigger": {"type": "any", "of": of}})])
    assert not mirror.nouns(Collection.SCHEDULES)
    assert set(mirror.quarantine) == {(Collection.SCHEDULES, id)}
    mirror.fold([Change(Collection.SCHEDULES, Operation.PUT, id, fields)])
    assert mirror.nouns(Collection.SCHEDULES)[id].trigger == decode_schedule(id, stored).trigger
    assert not mirror.quarantine


def test_a_change_to_another_form_is_noticed_in_a_patch() -> None:
    stored, _ = DOCUMENTS[Collection.JOBS]
    fields = {name: stored[name] for name in LEAN_FIELDS[Collection.JOBS] if name in stored}
    mirror = Mirror()
    mirror.fold([Change(Collection.JOBS, Operation.PUT, "a", fields)])
    mirror.fold([Change(Collection.JOBS, Operation.PATCH, "a", {"priority": 9, "rev": 2})])
    assert mirror.nouns(Collection.JOBS)["a"].priority == 9
    mirror.fold([Change(Collection.JOBS, Operation.PATCH, "a", {"v": 2, "priority": "high", "rev": 3})])
    assert not mirror.nouns(Collection.JOBS)
    assert (Collection.JOBS, "a") in mirror.quarantine


def test_a_schedule_of_several_jobs_has_nothing_where_a_release_before_reads_the_only_one() -> None:
    plain = make_template()
    jobs = (GraphJob("first", (), plain), GraphJob("last", ("first",), plain))
    made = JobGraph(jobs, graph_order([(job.ref, job.depends_on) for job in jobs]))
    stored = make_schedule(graph=made, template=plain, payload=None)
    assert stored["v"] == NEWEST_VERSION
    assert decode_schedule("tick", stored).graph == made
    # 0.2.0 demands a definition there, so it sets the schedule aside.
    assert set(stored["job"]) == {"tenant", "jobs"}


def test_the_form_costs_a_job_seven_bytes() -> None:
    stored, _ = DOCUMENTS[Collection.JOBS]
    unsaid = {name: value for name, value in stored.items() if name != "v"}
    assert len(bson.encode(stored)) - len(bson.encode(unsaid)) == 7


@pytest.mark.parametrize(
    ("version", "is_readable"), [(0, False), (1, True), (NEWEST_VERSION, True), (NEWEST_VERSION + 1, False)]
)
def test_a_database_of_another_version_is_not_for_this_release(version: int, is_readable: bool) -> None:
    assert (why_unreadable(version) == "") == is_readable


def test_the_version_of_the_database_is_no_part_of_the_digest() -> None:
    """Replicas of the release before, which do not mirror it, must agree with these."""
    mirror = Mirror()
    digest = mirror.digest
    stored = encode_schema_version(SchemaVersion(1))
    mirror.fold([Change(Collection.META, Operation.PUT, stored.pop("_id"), stored)])
    assert mirror.digest == digest
