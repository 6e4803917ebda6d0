"""What is wrong with the cluster, in words: a table of rules, each with what it checks and what it found.

What a rule does not watch, it does not call right. A rule that could not read its input is *unchecked*, and then the
state is not good; a rule for which there is nothing to watch now is left out. Prometheus handles what needs a rate or a
long time; the runbooks are those of its alerts, in ``k8s/monitoring/rules.yaml``.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pydantic import Field

from hascheduler.api.routing.recent_reads import Unread
from hascheduler.check.finding import FindingKind
from hascheduler.model.values.error_patterns import NO_ERROR, first_line
from hascheduler.model.values.instants import WallMs, format_duration
from hascheduler.model.values.redaction import redacted_beginning
from hascheduler.ports import Cluster, FailedJobs, Gauges
from hascheduler.schema.failover import Cause, Failover
from hascheduler.schema.forms import Instant, instant_text
from hascheduler.schema.noun import Part

Severity = Literal["page", "ticket"]
NAMED_MAX = 3
_MINUTE_MS, _HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
_CHANGES_MS = 10 * _MINUTE_MS
_STREAM_LAG_MS_MAX = 5_000
_LOOP_AGE_MS_MAX = 10_000
_OFTEN = 3
"""A schedule that failed so often in a row is urgent."""
_ERROR_LENGTH_MAX = 160


class HealthLinkResponse(Part):
    """The view of the dashboard that shows the rows of a problem."""

    view: str = Field(examples=["schedules"])
    """The view"""
    query: dict[str, str] = Field(default={}, examples=[{"failing": "true"}])
    """The filter of its list"""


class HealthProblemResponse(Part):
    """Something that is wrong."""

    severity: Severity = Field(examples=["ticket"])
    """`page`: act now; `ticket`: look today"""
    rule: str = Field(examples=["failing_schedules"])
    """The rule that found it"""
    text: str = Field(examples=["2 schedules fail: nightly, hourly."])
    """What is wrong"""
    evidence: str | None = Field(default=None, examples=["nightly: 2 failures in a row"])
    """What shows it, such as an error; null: nothing more"""
    since_ms: Instant | None = Field(default=None, examples=["2030-01-01T00:00:00.000Z"])
    """Since when, or since when the answering replica has known it"""
    runbook: str | None = Field(default=None, examples=[None])
    """The alert whose runbook says what to do; null if there is none"""
    link: HealthLinkResponse | None = None
    """Where the dashboard shows the rows; null: nowhere"""

    @property
    def key(self) -> str:
        """Return what it keeps while its numbers change."""
        return f"{self.rule} {self.runbook}"


class UncheckedRuleResponse(Part):
    """A rule whose input could not be read."""

    rule: str = Field(examples=["Failed jobs"])
    """The rule"""
    reason: str = Field(examples=["the database did not answer in 2 s"])
    """Why it was not checked"""


class HealthCountsResponse(Part):
    """How much fails; null: not checked."""

    failed_jobs: int | None = Field(default=None, examples=[0])
    """Jobs that failed for good in the last 24 h; at most 1000 are counted"""
    failing_schedules: int | None = Field(default=None, examples=[2])
    """Schedules whose last job failed"""
    late_schedules: int | None = Field(default=None, examples=[0])
    """Schedules that have not fired although they should have; at most 2000 are counted"""


class HealthResponse(Part):
    """The verdict on the cluster, from what the token may see."""

    state: Literal["good", "warning", "critical", "unknown"] = Field(examples=["warning"])
    """`good`: nothing is wrong; `unknown`: the same, but not all could be checked; `critical`: act now"""
    title: str = Field(examples=["2 schedules fail"])
    """The verdict in one line"""
    text: str = Field(examples=["Scheduling goes on: replica-2 has led for 5m, and 3 of 3 replicas are alive."])
    """If scheduling goes on, in one sentence"""
    checked: list[str] = Field(examples=[["A replica leads"]])
    """What was checked"""
    unchecked: list[UncheckedRuleResponse] = Field(default=[])
    """What could not be checked"""
    problems: list[HealthProblemResponse] = Field(default=[])
    """What is wrong, the worst first"""
    counts: HealthCountsResponse = HealthCountsResponse()
    """How much fails"""
    replicas_expected: int = Field(examples=[3])
    """How many replicas should be alive: `HASCHEDULER_REPLICAS_EXPECTED`, or the most of the last hour"""
    replicas_alive: int = Field(examples=[3])
    """How many are"""


@dataclass(slots=True)
class ScheduleTrouble:
    """How many schedules fail, the worst with their failures in a row, negative, and the names of the late ones."""

    failing: int = 0
    worst: list[tuple[int, str]] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that the rules know; ``tenant`` is that of the caller's token, None if it is for all tenants."""

    now: WallMs
    cluster: Cluster
    gauges: Gauges
    failed: FailedJobs | Unread
    """Those that failed in the last 24 h, of the newest submissions."""
    unready_reason: str = ""
    tenant: str | None = None
    replicas_expected: int = 1
    failovers: Sequence[Failover] | Unread = ()
    schedules: ScheduleTrouble | Unread = field(default_factory=ScheduleTrouble)

    @property
    def alive(self) -> Sequence[str]:
        """Return the names of the live replicas."""
        return [replica.name for replica in self.cluster.replicas if replica.id not in self.cluster.silent]

    @property
    def leader(self) -> str | None:
        """Return the name of the leader, None if no replica leads; for people, so a remote clock is trusted."""
        lease = self.cluster.lease
        if lease is None or not lease.holder:
            return None
        is_fresh = self.cluster.leading or self.now - lease.renewed_at_ms <= lease.lease_duration_ms
        return (lease.holder.rpartition(".")[0] or lease.holder) if is_fresh else None


@dataclass(frozen=True, slots=True)
class Found:
    """A problem; ``severity`` and ``runbook`` are those of the rule if not given."""

    text: str
    evidence: str | None = None
    since_ms: int | None = None
    link: HealthLinkResponse | None = None
    severity: Severity | None = None
    runbook: str | None = None


Findings = Iterator[Found | Unread | None]
"""What a rule found; None: there is nothing to watch now."""


def _leader(known: Known) -> Findings:
    lease = known.cluster.lease
    if known.leader is None:
        since_ms = None if lease is None or not lease.holder else lease.renewed_at_ms
        yield Found("No replica leads: nothing fires and nothing starts.", since_ms=since_ms)


def _broker(known: Known) -> Findings:
    holder = "" if known.cluster.lease is None else known.cluster.lease.holder
    reported = (each.broker_accepting for each in known.cluster.replicas if each.id == holder)
    accepts = known.gauges.broker_accepting if known.gauges.leading else next(reported, None)
    if accepts is None:  # no replica leads, or one of 0.2.0
        yield None
    elif not accepts:
        yield Found("RabbitMQ accepts no messages from the leader: no job starts.")


def _processors(known: Known) -> Findings:
    jobs = known.gauges.jobs if known.tenant is None else known.gauges.jobs_of_tenant.get(known.tenant, {})
    pending, states = jobs.get("pending", 0), known.gauges.processors
    if pending and not states.get("live", 0):
        why = "all processors drain" if states.get("draining") else "no processor is alive"
        yield Found(f"{_count(pending, 'job waits', 'jobs wait')}, and {why}.", link=_link("jobs", state="pending"))


def _late_schedules(known: Known) -> Findings:
    if isinstance(known.schedules, Unread):
        yield known.schedules
    elif known.leader is None or known.cluster.pause is not None:
        yield None
    elif late := known.schedules.late:
        text = f"{_count(len(late), 'schedule is', 'schedules are')} late: {_names(late)}."
        yield Found(text, link=_link("schedules", late="true"))


def _failed_jobs(known: Known) -> Findings:
    failed = known.failed
    if isinstance(failed, Unread):
        yield failed
    elif failed.jobs:
        newest = {job.definition: job for job in sorted(failed.jobs, key=lambda job: job.at_ms)}
        by_definition = Counter(job.definition for job in failed.jobs)
        errors = {name: first_line(newest[name].error) or NO_ERROR for name, _ in by_definition.most_common(NAMED_MAX)}
        least = "" if failed.complete else "At least "
        since_ms = known.now - known.now % _MINUTE_MS - DAY_MS
        yield Found(
            f"{least}{_count(len(failed.jobs), 'job')} failed for good in the last 24 h: {_by_count(by_definition)}.",
            "; ".join(f"{name}: {redacted_beginning(error, _ERROR_LENGTH_MAX)}" for name, error in errors.items()),
            since_ms=min(job.at_ms for job in failed.jobs),
            link=_link("jobs", state="failed", failed_since=instant_text(since_ms)),
            severity="page" if any(job.at_ms > known.now - _HOUR_MS for job in failed.jobs) else "ticket",
        )
    elif _is_unsure(failed):
        yield Unread("there are too many failed jobs; those that were submitted last did not fail in the last 24 h")


def _is_unsure(failed: FailedJobs) -> bool:
    return not (failed.jobs or failed.complete)


def _failing_schedules(known: Known) -> Findings:
    if isinstance(known.schedules, Unread):
        yield known.schedules
    elif count := known.schedules.failing:
        worst = known.schedules.worst
        yield Found(
            f"{_count(count, 'schedule fails', 'schedules fail')}: {_names([name for _, name in worst], count)}.",
            "; ".join(f"{name}: {_count(-times, 'failure')} in a row" for times, name in worst),
            link=_link("schedules", failing="true"),
            severity="page" if any(-times >= _OFTEN for times, _ in worst) else "ticket",
        )


def _findings(known: Known) -> Findings:
    last_check = known.cluster.last_check
    if last_check is None:
        yield None
        return
    for kind, count in sorted(last_check.counts.items()):
        if count and kind == FindingKind.CURSOR_AHEAD:
            verb = "is" if count == 1 else "are"
            text = f"{_count(count, 'schedule')} fired ahead of time because a clock was wrong, and {verb} silent now."
            link = _link("schedules", ahead="true")
            yield Found(text, None, last_check.at_ms, link, "page", "HaschedulerSchedulesAhead")
        elif count:
            text = f"The leader's check of the database found {count:,} {kind.replace('_', ' ')}."
            yield Found(text, "hascheduler check lists each with its remedy", last_check.at_ms)


def _pause(known: Known) -> Findings:
    pause = known.cluster.pause
    if pause is not None:
        what = "All schedules are paused" if pause.schedules_only else "Everything is paused: no job starts"
        yield Found(f"{what}.", f"by {pause.by}: {pause.because or '–'}", pause.since_ms)


def _replicas(known: Known) -> Findings:
    alive = known.alive
    silent = sorted({each.name for each in known.cluster.replicas if each.id in known.cluster.silent} - {*alive})
    if silent or len(alive) < known.replicas_expected:
        expected = max(known.replicas_expected, len(alive) + len(silent))
        evidence = f"silent: {_names(silent)}" if silent else None
        yield Found(f"{len(alive)} of {_count(expected, 'replica is', 'replicas are')} alive.", evidence)


def _readiness(known: Known) -> Findings:
    if known.unready_reason:
        yield Found(f"This replica is not ready: {known.unready_reason}. Its data may be old.")
    for replica in known.cluster.replicas:
        if not (replica.ready or replica.id in known.cluster.silent or replica.id == known.cluster.replica_id):
            yield Found(f"Replica {replica.name} is not ready.")


def _leadership(known: Known) -> Findings:
    if isinstance(known.failovers, Unread):
        yield known.failovers
        return
    changes = [each for each in known.failovers if each.deciding_at_ms > known.now - _CHANGES_MS]
    changes = [each for each in changes if each.cause is not Cause.FIRST]
    if changes:
        yield Found(
            f"The leader changed {'once' if len(changes) == 1 else f'{len(changes)} times'} in the last 10 minutes.",
            f"how the lease became free: {_by_count(Counter(each.cause.replace('_', ' ') for each in changes))}",
            since_ms=min(each.deciding_at_ms for each in changes),
        )


def _stream(known: Known) -> Findings:
    lag_ms = known.gauges.stream_lag_ms
    if lag_ms is not None and lag_ms > _STREAM_LAG_MS_MAX:
        yield Found(f"The change stream is {_span(lag_ms)} behind.")


def _loop(known: Known) -> Findings:
    if known.gauges.loop_age_ms > _LOOP_AGE_MS_MAX:
        yield Found(f"The dispatch loop has not run for {_span(known.gauges.loop_age_ms)}.")


def _lost_processors(known: Known) -> Findings:
    alive = {processor.name for processor, _, is_alive in known.cluster.processors if is_alive}
    lost = sorted({processor.name for processor, _, _ in known.cluster.processors} - alive)
    if lost:
        yield Found(f"{_count(len(lost), 'processor')} stopped without a word: {_names(lost)}.")


def _unable_processors(known: Known) -> Findings:
    if count := known.gauges.unable.get("not_consuming", 0):
        yield Found(f"{_count(count, 'live processor does', 'live processors do')} not consume jobs.")
    if count := known.gauges.unable.get("resting", 0):
        yield Found(f"{_count(count, 'live processor')} did not start the last jobs.")


def _drained_processors(known: Known) -> Findings:
    names = sorted({each.name for each, _, _ in known.cluster.processors} & known.cluster.drains.keys())
    if names:
        drains = [known.cluster.drains[name] for name in names]
        evidence = "; ".join(f"by {drain.by}: {drain.because or '–'}" for drain in drains[:NAMED_MAX])
        text = f"{_count(len(names), 'processor is', 'processors are')} drained: {_names(names)}."
        yield Found(text, evidence, min(drain.since_ms for drain in drains))


def _unschedulable(known: Known) -> Findings:
    if not known.gauges.processors.get("live", 0):
        yield None  # `_processors` tells it
    elif count := known.gauges.unschedulable:
        link = _link("jobs", state="pending", unschedulable="true")
        yield Found(f"{_count(count, 'job')} can't run on any live processor.", link=link)


def _waits(known: Known) -> Findings:
    bound_ms = known.gauges.wait_bound_ms
    if bound_ms is None:
        yield None
    elif known.gauges.slots.get("free", 0):
        waits = [(-waited_ms, lane) for lane, waited_ms in known.gauges.waited_ms.items() if waited_ms > bound_ms]
        if waits:
            longest = f"{_span(-min(waits)[0])} although slots are free"
            text = f"Jobs of {_count(len(waits), 'lane')} have waited for up to {longest}: "
            since_ms = known.now + min(waits)[0]
            yield Found(f"{text}{_names([lane for _, lane in sorted(waits)])}.", since_ms=since_ms, link=_link("lanes"))


def _mirrors(known: Known) -> Findings:
    if names := sorted(id.rpartition(".")[0] or id for id in known.cluster.differing):
        yield Found(f"The mirrors of {_names(names)} differ from this replica's.")


def _zone_data(known: Known) -> Findings:
    alive = [each for each in known.cluster.replicas if each.id not in known.cluster.silent]
    if len({each.zone_data for each in alive} - {None}) > 1:
        text = "The replicas' time-zone data differ: a change of leader may move fires."
        yield Found(text, "; ".join(f"{each.name}: {each.zone_data or 'unknown'}" for each in alive))


def _quarantine(known: Known) -> Findings:
    if known.cluster.quarantined:
        first = None if known.tenant is not None else next(iter(known.cluster.quarantine), None)
        text = f"{_count(known.cluster.quarantined, 'document')} can't be read."
        yield Found(text, None if first is None else "{} {}: {}".format(*first))


@dataclass(frozen=True, slots=True)
class HealthRule:
    """``checked`` says what it checks. If not ``of_mirror``, it can be trusted even if the mirror is old.

    ``of_all``: it tells of what one tenant may not see.
    """

    find: Callable[[Known], Findings]
    checked: str
    severity: Severity
    runbook: str | None = None
    of_mirror: bool = True
    of_all: bool = False

    @property
    def name(self) -> str:
        return self.find.__name__.removeprefix("_")


RULES = (
    HealthRule(_leader, "A replica leads", "page", "HaschedulerNobodyLeads"),
    HealthRule(_broker, "RabbitMQ accepts messages", "page", "HaschedulerBrokerNotAccepting"),
    HealthRule(_processors, "A processor is there for waiting jobs", "page", "HaschedulerNoProcessors"),
    HealthRule(_failed_jobs, "No job failed for good in the last 24 h", "ticket", of_mirror=False),
    HealthRule(_late_schedules, "No schedule is late", "page", "HaschedulerFiresLate"),
    HealthRule(_failing_schedules, "No schedule fails", "ticket"),
    HealthRule(_findings, "The check of the database found nothing", "ticket", "HaschedulerCheckFindings"),
    HealthRule(_pause, "Nothing is paused", "ticket", "HaschedulerPaused"),
    HealthRule(_replicas, "The replicas are alive", "ticket", "HaschedulerUnreachable"),
    HealthRule(_readiness, "The replicas are ready", "ticket", "HaschedulerReplicaNotReady", of_mirror=False),
    HealthRule(_leadership, "The leader stays", "ticket", "HaschedulerLeaderFlapping", of_mirror=False),
    HealthRule(_stream, "The change stream is not behind", "ticket", "HaschedulerStreamLagging"),
    HealthRule(_loop, "The dispatch loop runs", "ticket", "HaschedulerLoopWedged", of_mirror=False),
    HealthRule(_lost_processors, "No processor was lost", "ticket", of_all=True),
    HealthRule(_unable_processors, "The processors consume and start jobs", "ticket", "HaschedulerProcessorUnable"),
    HealthRule(_drained_processors, "No processor is drained", "ticket", of_all=True),
    HealthRule(_unschedulable, "Each waiting job can run somewhere", "ticket", "HaschedulerUnschedulable", of_all=True),
    HealthRule(_waits, "No job waits beyond the bound", "ticket", "HaschedulerWaitsBeyondBound", of_all=True),
    HealthRule(_mirrors, "The mirrors agree", "ticket", "HaschedulerMirrorsDiffer"),
    HealthRule(_zone_data, "The time-zone data agree", "ticket", "HaschedulerZoneDataDiffer"),
    HealthRule(_quarantine, "All documents can be read", "ticket", "HaschedulerQuarantined"),
)


def health_of(known: Known) -> HealthResponse:
    """Return the verdict of all rules on what the caller may see."""
    problems: list[HealthProblemResponse] = []
    checked: list[str] = []
    unchecked: list[UncheckedRuleResponse] = []
    for rule in RULES:
        if rule.of_all and known.tenant is not None:
            continue
        findings = [*rule.find(known)]
        found = [each for each in findings if isinstance(each, Found)]
        problems += [_problem_of(rule, each) for each in found]
        reasons = [each.reason for each in findings if isinstance(each, Unread)]
        if rule.of_mirror and known.unready_reason and not found:
            reasons.append(f"this replica is not ready: {known.unready_reason}")
        if reasons:
            unchecked.append(UncheckedRuleResponse(rule=rule.name.replace("_", " ").capitalize(), reason=reasons[0]))
        elif None not in findings:
            checked.append(rule.checked)
    problems.sort(key=lambda each: each.severity != "page")
    failed, schedules = known.failed, known.schedules
    if known.unready_reason or isinstance(schedules, Unread):
        failing, late = None, None
    else:
        failing, late = schedules.failing, len(schedules.late)
    return HealthResponse(
        **summary_of([(each.severity, each.text) for each in problems], [each.rule for each in unchecked]),
        text=_text(known),
        checked=checked,
        unchecked=unchecked,
        problems=problems,
        counts=HealthCountsResponse(
            failed_jobs=None if isinstance(failed, Unread) or _is_unsure(failed) else len(failed.jobs),
            failing_schedules=failing,
            late_schedules=late,
        ),
        replicas_expected=known.replicas_expected,
        replicas_alive=len(known.alive),
    )


def _problem_of(rule: HealthRule, found: Found) -> HealthProblemResponse:
    own = {each.name: getattr(found, each.name) for each in fields(found)}
    own |= {"severity": found.severity or rule.severity, "runbook": found.runbook or rule.runbook}
    return HealthProblemResponse(rule=rule.name, **own)


def summary_of(problems: Sequence[tuple[str, str]], unchecked: Sequence[str]) -> Mapping[str, Any]:
    """Return the ``state`` and ``title`` of problems (severity and text, the worst first) and ``unchecked`` rules."""
    if not problems and unchecked:
        return {"state": "unknown", "title": f"Nothing wrong is known, but not checked: {_names(unchecked)}"}
    if not problems:
        return {"state": "good", "title": "All is well"}
    worst = [text for severity, text in problems if severity == problems[0][0]][:2]
    clauses = [text.partition(": ")[0].removesuffix(".") for text in worst]
    if len(problems) > len(worst):
        clauses.append(_count(len(problems) - len(worst), "more problem"))
    clauses[1:] = [text[0].lower() + text[1:] if text.split()[0][1:].islower() else text for text in clauses[1:]]
    title = ", and ".join([", ".join(clauses[:-1]), clauses[-1]] if clauses[1:] else clauses)
    return {"state": "critical" if problems[0][0] == "page" else "warning", "title": title}


def _text(known: Known) -> str:
    alive = f"{len(known.alive)} of {_count(known.replicas_expected, 'replica is', 'replicas are')} alive"
    lease, pause = known.cluster.lease, known.cluster.pause
    if known.unready_reason:
        return f"The answering replica is not ready, and its data may be old: {known.unready_reason}."
    if lease is None or known.leader is None:
        return f"Scheduling stands still: no replica leads, and {alive}."
    led = f"{known.leader} has led for {_span(known.now - lease.acquired_at_ms)}, and {alive}."
    if pause is None:
        return f"Scheduling goes on: {led}"
    return f"{'Schedules are' if pause.schedules_only else 'Scheduling is'} paused by {pause.by}: {led}"


def _link(view: str, **query: str) -> HealthLinkResponse:
    return HealthLinkResponse(view=view, query=query)


def _span(span_ms: int) -> str:
    """Return the span in seconds, from an hour on in minutes, from a day on in hours."""
    step_ms = 1_000 if span_ms < _HOUR_MS else _MINUTE_MS if span_ms < DAY_MS else _HOUR_MS
    return format_duration(max(span_ms - span_ms % step_ms, 0))


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def _names(names: Sequence[str], count: int | None = None) -> str:
    """Return the first names, and how many more of ``count`` there are."""
    more = (len(names) if count is None else count) - min(len(names), NAMED_MAX)
    return ", ".join(names[:NAMED_MAX]) + (f" and {more:,} more" if more else "")


def _by_count(counts: Mapping[str, int]) -> str:
    """Return ``9 resize, 3 nightly``."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    named = [f"{count:,} {name}" for name, count in ordered[:NAMED_MAX]]
    others = sum(count for _, count in ordered[NAMED_MAX:])
    return ", ".join([*named, f"{others:,} others"] if others else named)
