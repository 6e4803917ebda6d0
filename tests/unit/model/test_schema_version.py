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
from hascheduler.model.schema_version import NEWEST_VERSION
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
