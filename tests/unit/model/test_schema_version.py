"""Documents name their form; one of an unknown form is set aside, and never read as another form."""

from typing import Any

import bson
import pytest

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.schema_version import NEWEST_VERSION, SchemaVersion, encode_schema_version, why_unreadable
from hascheduler.schema.noun import document_of
from tests.factories import make_definition, make_job, make_processor, make_schedule

DOCUMENTS: dict[Collection, dict[str, Any]] = {
    Collection.JOBS: new_job_document(make_job()),
    Collection.SCHEDULES: make_schedule(),
    Collection.DEFINITIONS: document_of(make_definition()),
    Collection.PROCESSORS: encode_processor(make_processor()),
}


@pytest.mark.parametrize("form", [NEWEST_VERSION + 1, 0, -1, "1", 1.0, True, None])
@pytest.mark.parametrize("collection", DOCUMENTS)
def test_a_document_of_an_unknown_form_is_set_aside_until_it_is_a_known_one(
    collection: Collection, form: object
) -> None:
    stored = DOCUMENTS[collection]
    id, mirror = stored["_id"], Mirror()
    fields = {name: stored[name] for name in LEAN_FIELDS[collection] if name in stored}
    assert fields["v"] == NEWEST_VERSION
    mirror.fold([Change(collection, Operation.PUT, id, fields)])
    assert set(mirror.nouns(collection)) == {id}
    mirror.fold([Change(collection, Operation.PUT, id, {**fields, "v": form})])
    assert not mirror.nouns(collection)
    assert mirror.quarantine[collection, id].startswith("v: ")
    known = {**{name: value for name, value in fields.items() if name != "v"}, "v": bson.Int64(1)}
    mirror.fold([Change(collection, Operation.PUT, id, known)])
    assert (set(mirror.nouns(collection)), mirror.quarantine) == ({id}, {})


def test_a_change_to_another_form_is_noticed_in_a_patch() -> None:
    stored = DOCUMENTS[Collection.JOBS]
    fields = {name: stored[name] for name in LEAN_FIELDS[Collection.JOBS] if name in stored}
    mirror = Mirror()
    mirror.fold([Change(Collection.JOBS, Operation.PUT, "a", fields)])
    mirror.fold([Change(Collection.JOBS, Operation.PATCH, "a", {"v": 2, "priority": "high", "rev": 2})])
    assert not mirror.nouns(Collection.JOBS)
    assert (Collection.JOBS, "a") in mirror.quarantine


@pytest.mark.parametrize(
    ("version", "is_readable"), [(0, False), (1, True), (NEWEST_VERSION, True), (NEWEST_VERSION + 1, False)]
)
def test_a_database_of_another_version_is_not_for_this_release(version: int, is_readable: bool) -> None:
    assert (why_unreadable(version) == "") == is_readable


def test_the_version_of_the_database_is_no_part_of_the_digest() -> None:
    """Replicas of 0.2.0, which do not mirror it, must agree with these."""
    mirror = Mirror()
    digest = mirror.digest
    stored = encode_schema_version(SchemaVersion(1))
    mirror.fold([Change(Collection.META, Operation.PUT, stored.pop("_id"), stored)])
    assert mirror.digest == digest
