"""Whatever a token may ask for, each stored document stays well below what MongoDB holds: the largest of each kind.

==============  =====================================================================================================
document        what bounds it
==============  =====================================================================================================
job             payload, result and each late result: 256 KiB of JSON, six times that as BSON; the ends of 200 attempts
                with 4 KiB of error each; 1,000 dependencies; 64 labels
schedule        33 triggers (32 in the past) with 10,000 times and 100 windows each; the payload; 64 labels
processor       1,000 definitions; 16 resources
audit record    path and target of 512 characters
verdict         because_of, an id
==============  =====================================================================================================
"""

from dataclasses import replace
from typing import Any

import bson
import orjson

from hascheduler.api.work.schemas import DEFINITIONS_MAX, ERROR_BYTES_MAX, RESULT_BYTES_MAX
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.processor import encode_processor
from hascheduler.model.documents.schedule import decode_schedule, encode_schedule_edit
from hascheduler.model.documents.verdict import verdict_document
from hascheduler.model.job import ATTEMPTS_KEPT_MAX
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, json_bytes
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.model.verdict import Verdict, VerdictRun
from hascheduler.mongo.work import finishes
from hascheduler.schema.audit import AuditRecord
from hascheduler.schema.job import DEPENDENCIES_MAX
from hascheduler.schema.noun import document_of
from hascheduler.schema.schedule import PAST_MAX, TriggerPeriod
from hascheduler.schema.trigger import TIMES_MAX, Times, Trigger, Window
from hascheduler.testing.memory import work as memory_work
from hascheduler.triggers.checks import WINDOWS_MAX
from hascheduler.wire.fields import LABELS_MAX, TEXT_LENGTH_MAX
from tests.factories import NOW, make_job, make_processor, make_schedule

MIB = 1024 * 1024
DOCUMENT_BYTES_MAX = 16 * MIB
WIDE = "\N{PILE OF POO}" * TEXT_LENGTH_MAX
LABELS = {f"{number:03d}" + "k" * 125: WIDE for number in range(LABELS_MAX)}


def densest(json_bytes_max: int) -> list[int]:
    """The JSON of that size that takes the most room as BSON."""
    return [0] * ((json_bytes_max - 1) // 2)


def size(document: dict[str, Any]) -> int:
    return len(bson.encode(document))


def test_a_list_of_small_numbers_is_the_densest_json() -> None:
    assert json_bytes(densest(PAYLOAD_BYTES_MAX)) <= PAYLOAD_BYTES_MAX
    largest = size({"": densest(PAYLOAD_BYTES_MAX)})
    assert largest < 6.2 * PAYLOAD_BYTES_MAX
    # A number that is longer in BSON is longer as JSON too.
    for unit in ({}, [], None, True, "", 1.5, 3_000_000_000, 1e5, {"": 0}, [0], {"a": 1}):
        other = [unit] * (PAYLOAD_BYTES_MAX // (len(orjson.dumps(unit)) + 1))
        assert size({"": other}) < largest, unit


def test_a_job_with_all_that_may_be_in_it() -> None:
    ids = tuple(WIDE for _ in range(DEPENDENCIES_MAX))
    job = make_job(
        "j" * 320, payload=densest(PAYLOAD_BYTES_MAX), labels=LABELS, target=WIDE, depends_on=ids, waits_for=ids
    )
    end = {
        "number": 2**53, "processor": WIDE, "dispatched_at_ms": NOW, "started_at_ms": NOW, "finished_at_ms": NOW,
        "outcome": "given_back", "error": "e" * ERROR_BYTES_MAX,
    }  # fmt: skip
    assert finishes.LATE_RESULTS_KEPT_MAX == memory_work.LATE_RESULTS_KEPT_MAX
    late = {**end, "result": densest(RESULT_BYTES_MAX)}
    document = new_job_document(job) | {
        "result": densest(RESULT_BYTES_MAX),
        "error": "e" * ERROR_BYTES_MAX,
        "progress": {"percent": 1.0, "text": "\N{PILE OF POO}" * 500, "at_ms": NOW},
        "attempts": [end] * ATTEMPTS_KEPT_MAX,
        "late_results": [late] * finishes.LATE_RESULTS_KEPT_MAX,
    }
    assert size(document) < 12 * MIB < DOCUMENT_BYTES_MAX


def test_a_schedule_whose_past_waits_for_a_leader() -> None:
    times = tuple(WallMs(LATEST_MS - number) for number in range(TIMES_MAX, 0, -1))
    windows = tuple(Window(WallMs(NOW + 2 * n), WallMs(NOW + 2 * n + 1)) for n in range(WINDOWS_MAX))
    trigger = replace(Trigger(Times(times)), exclude=windows)
    document = make_schedule("s" * 128, payload=densest(PAYLOAD_BYTES_MAX), labels=LABELS)
    schedule = replace(
        decode_schedule(document["_id"], document),
        trigger=trigger,
        past=tuple(TriggerPeriod(trigger, NOW, NOW) for _ in range(PAST_MAX)),
    )
    assert size(document | encode_schedule_edit(schedule)) < 10 * MIB < DOCUMENT_BYTES_MAX


def test_small_ones() -> None:
    processor = make_processor("p" * 320, definitions=[f"{n:04d}" + "d" * 124 for n in range(DEFINITIONS_MAX)])
    assert size(encode_processor(processor)) < MIB
    path = "\N{PILE OF POO}" * 513
    record = AuditRecord(
        id="i" * 40,
        at_ms=NOW,
        who="w" * 256,
        token_id="t" * 64,
        role="operator",
        tenant="t" * 128,
        address="a" * 45,
        method="DELETE",
        path=path,
        route=path,
        target=path,
        status=200,
        request_id="r" * 64,
        left_out=9,
    )
    assert size(document_of(record)) < 8 * 1024
    run = VerdictRun("s" * 128, Verdict.SKIPPED, NOW, NOW, 1, "j" * 320)
    assert size(verdict_document(run, NOW)) < 1024
