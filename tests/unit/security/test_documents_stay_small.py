"""Whatever a token may ask for, each stored document stays well below what MongoDB holds: the largest of each kind."""

from dataclasses import replace
from typing import Any

import bson
import orjson

from hascheduler.api.work.schemas import ERROR_BYTES_MAX, RESULT_BYTES_MAX
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.schedule import decode_schedule, encode_schedule_edit
from hascheduler.model.job import ATTEMPTS_KEPT_MAX
from hascheduler.model.payload import PAYLOAD_BYTES_MAX
from hascheduler.model.values.instants import LATEST_MS, WallMs
from hascheduler.mongo.work import finishes
from hascheduler.schema.forms import LABELS_MAX, TEXT_LENGTH_MAX
from hascheduler.schema.job import DEPENDENCIES_MAX
from hascheduler.schema.schedule import PAST_MAX, TriggerPeriod
from hascheduler.schema.trigger import TIMES_MAX, Times, Trigger, Window
from hascheduler.testing.memory import work as memory_work
from hascheduler.triggers.checks import WINDOWS_MAX
from tests.factories import NOW, make_job, make_schedule

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
    largest = size({"": densest(PAYLOAD_BYTES_MAX)})
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
