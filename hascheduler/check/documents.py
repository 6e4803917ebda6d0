"""Check that every document can be read in a known form: all replicas quarantine one that can't."""

from collections.abc import Mapping
from typing import Any

from hascheduler.check.finding import Finding, FindingKind, short_id
from hascheduler.errors import InvalidInput
from hascheduler.mirror.tables import TABLES
from hascheduler.model.collection import Collection
from hascheduler.model.documents.verdict import decode_verdict
from hascheduler.model.schema_version import decode_schema_version, why_unreadable

DECODERS = {collection: table.decode for collection, table in TABLES.items()}
DECODERS[Collection.VERDICTS] = lambda _, fields: decode_verdict(fields)

_HINTS: Mapping[Collection, str] = {
    Collection.SCHEDULES: "it does not fire: write it again through the API (hascheduler apply)",
    Collection.CALENDARS: "schedules that use it do not fire: write it again through the API (hascheduler apply)",
    Collection.JOBS: "it does not run: inspect it in MongoDB, then submit it again",
    Collection.PROCESSORS: "it gets no jobs: restart that processor",
    Collection.LEASES: "the leader is unknown: find out who wrote it; never delete it while a replica runs",
    Collection.REPLICAS: "restart that replica; the document expires by itself",
    Collection.JOURNAL: "no leader can take over: leave the replicas as they are, and ask for help",
    Collection.VERDICTS: "its times count as undecided here: inspect it in MongoDB",
    Collection.PAUSES: "it pauses nothing: delete it in MongoDB, then pause again (hascheduler pause --all, or"
    " hascheduler processor drain)",
    Collection.HOLDS: "it has no effect: restore it from a backup of that database",
    Collection.ROUTING: "no process of the deployment starts: restore it from a backup of the home's database",
    Collection.TOKENS: "it grants no access: delete it in MongoDB, and create another (hascheduler token create)",
}
_REPLACED = (
    Collection.SCHEDULES, Collection.DEFINITIONS, Collection.LANES, Collection.CALENDARS, Collection.TENANTS,
)  # fmt: skip
"""Collections in which a replacement repairs a document, but an edit, which must name the revision, does not."""
_HINT = "the defaults apply instead: write it again through the API (hascheduler apply)"


def decode_or_finding(collection: Collection, document: Mapping[str, Any]) -> Any:
    """Return the decoded value, or the `Finding` that says why it can't be read."""
    id = document.get("_id")
    try:
        return DECODERS[collection](id, document)
    except InvalidInput as error:
        return unreadable(collection, id, error)


def unreadable(collection: Collection, id: object, error: InvalidInput) -> Finding:
    """Return the finding that the document with that id can't be read."""
    document = f"{collection}/{short_id(id)}"
    if error.path == ("v",):
        return Finding(
            FindingKind.UNKNOWN_FORM,
            document,
            str(error),
            "another release wrote it: run that release, or restore a backup",
        )
    hint = _HINTS.get(collection, _HINT)
    if error.path == ("rev",) and collection in _REPLACED:
        hint = f"delete it (hascheduler {collection.value.removesuffix('s')} delete), and write it again"
    return Finding(FindingKind.UNREADABLE, document, str(error), hint)


def read_schema(document: Mapping[str, Any]) -> Finding | None:
    """Return the finding about the stored schema version if this release can't read it."""
    id = document.get("_id")
    try:
        version = decode_schema_version(id, document).version
    except InvalidInput as error:
        return unreadable(Collection.META, id, error)
    reason = why_unreadable(version)
    if not reason:
        return None
    return Finding(
        FindingKind.UNKNOWN_FORM, f"{Collection.META}/{short_id(id)}", reason, "run a release that can read it"
    )
