"""A replica of 0.2.0 that leads during a rolling update runs no job early that waits for a batch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hascheduler.model.documents.job import new_job_document
from hascheduler.model.documents.processor import encode_processor
from tests.earlier_code import unpack, why_no_history
from tests.factories import make_job, make_processor

BATCH = "batch:1"
LEAD = """
import json, sys
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import TermBegan
from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.documents import Collection

mirror, core = Mirror(), Dispatcher()
processor, *jobs = json.loads(sys.argv[1])

def put(collection, document):
    return Change(collection, Operation.PUT, document.pop("_id"), document)

facts = mirror.fold([put(Collection.PROCESSORS, processor)] + [put(Collection.JOBS, job) for job in jobs])
step = core.step(1_800_000_000_000, [*facts, TermBegan(1)])
for id in step.doubtful:
    mirror.want(Collection.JOBS, id)
wanted = mirror.take_wanted()
found = mirror.fold_fetched(wanted, [Change(collection, Operation.DELETE, id, {}) for collection, id in wanted])
decided = [*step.decisions, *core.step(1_800_000_000_001, found).decisions]
print(json.dumps({
    "read": list(step.doubtful), "dispatched": [each.job_id for each in decided if isinstance(each, Dispatch)],
    "live": sorted(mirror.nouns(Collection.JOBS)), "quarantined": len(mirror.quarantine),
}))
"""


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("0.2.0")
    if not unpack(into, "v0.2.0", "f684198"):
        pytest.skip(f"0.2.0 is taken from git, and {why_no_history()}")
    return into


def test_a_leader_of_0_2_0_keeps_back_what_waits_for_a_batch_and_reads_it_as_any_job(release: Path) -> None:
    jobs = [
        make_job("member", batch=BATCH), make_job("free"),
        make_job("waits", depends_on=(BATCH,), waits_for=(BATCH,)),
        make_job("ignores", depends_on=(BATCH,), waits_for=(BATCH,), ignores_failures=True),
    ]  # fmt: skip
    documents = [encode_processor(make_processor()), *map(new_job_document, jobs)]
    ran = subprocess.run(
        [sys.executable, "-c", LEAD, json.dumps(documents)],
        cwd=release, capture_output=True, check=False, timeout=120, text=True,
    )  # fmt: skip
    assert not ran.returncode, ran.stderr
    said = json.loads(ran.stdout)
    assert said["read"] == [BATCH], "and finds nothing there"
    assert sorted(said["dispatched"]) == ["free", "member"]
    assert (said["live"], said["quarantined"]) == (["free", "ignores", "member", "waits"], 0)
