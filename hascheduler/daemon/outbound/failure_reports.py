"""Report jobs that failed for good: submit a job of the definition that ``on_failure`` names.

This is no decision, and the journal has no entry of it. The leader follows its own events; once a minute, and when it
begins, it also reads the failed jobs of the last hours that are not marked as reported. The id of a report follows from
the failed job and its attempt, so reports that several leaders submit are one job. Then the failed job is marked. A
report that is not possible now waits for the next look: the database does not answer, the tenant has as many waiting
jobs as it may have, or its partition is held.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as SomeOf
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import structlog
from pydantic import JsonValue

from hascheduler.daemon.outbound.event_log import EventLog, LogFollower
from hascheduler.errors import WorldError
from hascheduler.lifecycle import leave_if_cancelled
from hascheduler.model.collection import Collection
from hascheduler.model.event import ERROR_LENGTH_MAX, EventType
from hascheduler.model.job import NewJob
from hascheduler.model.partition import partition_key, partition_of, with_partition
from hascheduler.model.values.instants import WallMs, format_instant
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.ports import Clock, EventFilter, JobStore, NewEvents, StoredDocument, failed_job_of
from hascheduler.schema.definition import Definition
from hascheduler.schema.job import SubmitJobBody
from hascheduler.schema.tenant import Tenant
from hascheduler.telemetry.log_lines import Reminders
from hascheduler.telemetry.metrics_replica import ReplicaMetrics

log = structlog.get_logger(__name__)

LOOK_EVERY_S = 60.0
_POLL_MS = 200
_LOOKED_BACK_MS = 6 * 3_600_000
_AT_ONCE_MAX = 500
"""As many as a follower gets at once."""


@dataclass(kw_only=True)
class FailureReports:
    """A loop of the leader. ``pending`` counts the waiting jobs of a tenant, ``shards`` those of the deployment."""

    jobs: JobStore | None
    events: EventLog
    nouns: Callable[[Collection], Mapping[str, Any]]
    pending: Callable[[str], int]
    leading: Callable[[], bool]
    clock: Clock
    metrics: ReplicaMetrics
    shards: int
    _reminders: Reminders = field(default_factory=Reminders, init=False)

    async def run(self) -> None:
        if self.jobs is None:
            return
        while not self.events.is_closed:
            if self.leading() and self.events.is_open:
                await self._follow(self.jobs)
            await asyncio.sleep(_POLL_MS / 1_000)

    async def _follow(self, jobs: JobStore) -> None:
        """Report until this replica no longer leads, or its log has left this loop behind: then all is read again."""
        loop = asyncio.get_running_loop()
        follower = LogFollower(self.events, None, EventFilter(types=frozenset({EventType.FAILED})))
        look_at = loop.time()
        while self.leading():
            if loop.time() >= look_at:
                self.metrics.may_fail(self.nouns(Collection.DEFINITIONS))
                await self._report_all(jobs)
                look_at = loop.time() + LOOK_EVERY_S
            leave_if_cancelled()
            answer = await follower.next(_POLL_MS)
            if not isinstance(answer, NewEvents):
                return
            if not answer.events:
                continue
            for event in answer.events:
                self.metrics.failed_for_good(event.definition or "")
            reporting = self._reporting()
            ids = [
                event.job
                for event in answer.events
                if event.job and (event.schedule or not event.definition or event.definition in reporting)
            ]
            if ids:
                await self._report_all(jobs, ids)

    def _reporting(self) -> Mapping[str, str]:
        """Return the ``on_failure`` of all definitions that have one."""
        definitions: Mapping[str, Definition] = self.nouns(Collection.DEFINITIONS)
        return {name: each.on_failure for name, each in definitions.items() if each.on_failure}

    async def _report_all(self, jobs: JobStore, ids: SomeOf[str] | None = None) -> None:
        """Report the failed jobs that are not reported; with ``ids``, only those."""
        done, refused = Counter[str](), set[str]()
        try:
            while self.leading():
                since_ms = WallMs(self.clock.wall_ms() - _LOOKED_BACK_MS)
                before = done.total(), len(refused)
                # One tenant that may submit nothing now does not hide the failures of the others.
                failed = await jobs.unreported(self._reporting(), since_ms, _AT_ONCE_MAX, ids, not_of=refused)
                await self._report_some(jobs, failed, done, refused)
                if len(failed) < _AT_ONCE_MAX or before == (done.total(), len(refused)):
                    return
        except WorldError as error:
            if self._reminders.is_due("database", self.clock.mono_ms()):
                log.warning("failure_reports_postponed", error=str(error))

    async def _report_some(
        self, jobs: JobStore, failed: Sequence[StoredDocument], done: Counter[str], refused: set[str]
    ) -> None:
        """Report what can be reported now: count it in ``done``, and add the tenants of the rest to ``refused``."""
        reporting = self._reporting()
        for job in failed:
            leave_if_cancelled()
            if not self.leading():
                break
            try:
                report = report_of(job, reporting, self.clock.wall_ms(), self.shards)
                if report is None:
                    continue
                refusal = self._refusal(report.tenant, done)
                if refusal is None:
                    definition: Definition | None = self.nouns(Collection.DEFINITIONS).get(report.definition)
                    submission = await jobs.submit(report if definition is None else definition.with_keys(report))
                    await jobs.reported(str(job["_id"]), job["attempt"], str(submission.document["_id"]))
                    done[report.tenant] += 1
                    continue
                refused.add(report.tenant)
            except WorldError:
                raise
            except Exception as error:  # no stored document may end the leader
                refusal = f"{type(error).__name__}: {error}"
            if self._reminders.is_due(refusal, self.clock.mono_ms()):
                log.warning("failure_report_postponed", job=job["_id"], reason=refusal)

    def _refusal(self, tenant: str, done: Mapping[str, int]) -> str | None:
        """Return why a job of the tenant can't be submitted now; ``done`` counts those that the core may not know."""
        hold = self.nouns(Collection.HOLDS).get(partition_key(partition_of(tenant)))
        if hold is not None and hold.is_held:
            return f"the partition of tenant {tenant!r} is held"
        limits: Tenant | None = self.nouns(Collection.TENANTS).get(tenant)
        most = None if limits is None else limits.max_pending
        if most is not None and self.pending(tenant) + done.get(tenant, 0) >= most:
            return f"tenant {tenant!r} may have at most {most} waiting jobs"
        return None


def report_of(job: StoredDocument, reporting: Mapping[str, str], now: WallMs, shards: int = 1) -> NewJob | None:
    """Return the job that reports the failed ``job``; None if its definition no longer asks for one."""
    definition = job.get("on_failure") or reporting.get(job["definition"])
    if definition is None:
        return None
    error, stored_labels = job.get("error"), job.get("labels")
    labels: dict[str, str] = stored_labels if isinstance(stored_labels, dict) else {}
    failed = failed_job_of(job, redacted_beginning(error, ERROR_LENGTH_MAX) if isinstance(error, str) else "")
    attempt = job.get("attempt")
    payload: dict[str, JsonValue] = {
        "job": failed.id,
        "definition": failed.definition,
        "schedule": failed.schedule,
        "tenant": failed.tenant,
        "target": failed.target,
        "error": failed.error or None,
        "attempt": attempt,
        "failures": job.get("failures"),
        "failed_at": format_instant(failed.at_ms),
        "labels": {**labels},
    }
    id = f"job:{failed.at_ms:011x}{sha256(f'{failed.id}/{attempt}'.encode()).hexdigest()[:16]}"
    body = SubmitJobBody.model_construct(
        definition=definition, payload=payload, lane=str(job.get("lane")), labels=labels
    )
    made = body.job(id if shards == 1 else with_partition(id, failed.tenant), failed.tenant, now)
    return replace(made, failed_job=failed.id)
