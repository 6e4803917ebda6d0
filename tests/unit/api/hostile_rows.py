"""Hostile requests to what schedules, submits, changes, waits, works and lets in: each with its answer.

(method, path, JSON body or None, status, path of a field that is wrong or None)
"""

from typing import Any

from tests.unit.api.requests import TICK

Row = tuple[str, str, Any, int, str | None]

HUGE = "9" * 400
DEEP: Any = "deep"
for _ in range(60):
    DEEP = [DEEP]
LONG_ID = "j" * 10_240
OPERATOR = {"$gt": ""}


def job(**fields: Any) -> dict[str, Any]:
    return {"definition": "log", **fields}


_P = "http:p.00000000"
_ATTEMPT = {"processor": _P, "job": "job:1", "attempt": 1}
_FAILED = {**_ATTEMPT, "outcome": "failed", "error": "no"}
_PARIS = {"type": "cron", "expression": "* * * * *", "timezone": "Europe/Paris"}
NOT_THERE = [
    "GET /v1/jobs/%7B%22$gt%22:%22%22%7D", "GET /v1/jobs/%0d%0aX-Injected:%201", "GET /v1/jobs/..",
    "GET /v1/jobs/%ed%a0%80", "POST /v1/jobs/unknown/retry", "POST /v1/jobs/unknown/retry/now",
    "DELETE /v1/tokens/unknown", "DELETE /v1/tokens/%00", "DELETE /v1/work/processors/p-1.bb",
    "DELETE /v1/work/processors/%00", "GET /v1/nothing", "GET /v1/schedules/", "GET /v1/schedules/a/b",
    "GET /v1/schedules/..%2f..%2fetc", "GET /v1/schedules/unknown", "GET /v1/schedules/%00",
    "GET /v1/schedules/%ff%fe", "GET /v1/schedules/$where", "DELETE /v1/schedules/unknown",
    "POST /v1/schedules/unknown/pause", "POST /v1/schedules/unknown/resume", "POST /v1/schedules/unknown/trigger",
    "GET /v1/schedules/unknown/preview", "GET /v1/schedules/unknown/verdicts", "GET /v1/jobs/unknown",
    "POST /v1/jobs/unknown/cancel", "POST /v1/processors/unknown/drain", "POST /v1/processors/%00/drain",
    "POST /v1/processors/unknown/undrain", "GET /v1/jobs/unknown/why", "GET /v1/jobs/%00/why",
]  # fmt: skip
NOT_ALLOWED = [
    "GET /v1/jobs:batch", "DELETE /v1/jobs/job:1", "GET /v1/jobs/unknown/retry", "GET /v1/jobs:retry",
    "DELETE /v1/tokens", "DELETE /v1/audit", "GET /v1/work/fetch", "GET /v1/schedules/unknown/backfill",
    "DELETE /v1/cluster", "GET /v1/jobs/unknown/cancel",
]  # fmt: skip
OTHERS: list[Row] = [
    ("PUT", "/v1/jobs:batch", {}, 405, None),
    ("POST", "/v1/jobs:nothing", {}, 404, None),
    ("POST", "/v1/jobs:counts", {}, 405, None),
    ("GET", f"/v1/jobs/{LONG_ID}", None, 404, None),
    ("PUT", "/v1/jobs/job:1", {}, 405, None),
    ("PATCH", "/v1/jobs", {}, 405, None),
    ("POST", "/v1/jobs/unknown/retry", {"with_dependents": True}, 404, None),
    ("POST", "/v1/jobs/unknown/reprioritize", {"priority": 9}, 404, None),
    ("DELETE", f"/v1/tokens/{LONG_ID}", None, 404, None),
    ("POST", "/v1/whoami", {}, 405, None),
    ("POST", "/v1/events", {}, 405, None),
    ("POST", "/v1/work/fetch", {"processor": "p-1.bb", "wait": 0}, 404, None),
    ("POST", "/v1/work/fetch", {"processor": _P, "wait": 0}, 404, None),
    ("POST", "/v1/work/start", _ATTEMPT, 409, None),
    ("POST", "/v1/work/start", {**_ATTEMPT, "processor": "p-1.bb"}, 404, None),
    ("POST", "/v1/work/heartbeat", {"processor": _P}, 404, None),
    ("POST", "/v1/work", {}, 404, None),
    ("PATCH", "/v1/schedules/unknown", {}, 404, None),
    ("POST", "/v1/schedules/unknown/preview", {}, 404, None),
    ("POST", "/v1/schedules/tick", {}, 405, None),
    ("POST", "/v1/cluster/pause", None, 415, None),
    ("POST", f"/v1/processors/{'p' * 257}/drain", None, 422, "name"),
    ("POST", "/v1/jobs/unknown/why", {}, 405, None),
    ("POST", "/metrics", {}, 405, None),
    ("POST", "/v1/jobs?wait=-1s", job(), 422, "wait"),
    ("POST", "/v1/jobs?wait=%D9%A3s", job(), 422, "wait"),
    ("POST", "/v1/jobs?wait[$gt]=", job(), 422, "wait[$gt]"),
    ("POST", "/v1/jobs?cancel_on_disconnect=maybe", job(), 422, "cancel_on_disconnect"),
    ("POST", "/v1/jobs?cancel_on_disconnect=2", job(), 422, "cancel_on_disconnect"),
    ("POST", "/v1/jobs?priority=10", job(), 422, "priority"),
    ("POST", "/v1/schedules:pause", {"filter": {"verdict": "$ne"}}, 422, "filter.verdict"),
    ("POST", "/v1/schedules:pause", {"filter": {}}, 422, "filter"),
    ("POST", "/v1/schedules:resume", {"filter": {"state": "pending"}}, 422, "filter.state"),
    ("POST", "/v1/schedules:reset", {"filter": {"text": "a"}, "after": "a b"}, 422, "after"),
    ("POST", "/v1/schedules:trigger", {"filter": {"text": "a"}}, 422, "Idempotency-Key"),
    ("POST", "/v1/schedules:trigger", {"filter": {"definition": "log"}, "dry_run": True}, 422, "filter.definition"),
    ("POST", "/v1/jobs:reprioritize", {"filter": {"target": "a"}}, 422, "priority"),
    ("POST", "/v1/jobs:reprioritize", {"filter": {"target": "a"}, "priority": 10**30}, 422, "priority"),
    ("POST", "/v1/jobs:retry", {"filter": {"schedule": "a b"}}, 422, "filter.schedule"),
    ("POST", "/v1/jobs:retry", "all", 422, ""),
    ("PUT", "/v1/schedules/tock", TICK, 422, "name"),
    ("PUT", "/v1/schedules/%24a", {k: v for k, v in TICK.items() if k != "name"}, 422, "name"),
    ("PATCH", "/v1/schedules/%24a", {}, 422, "name"),
    ("PATCH", "/v1/schedules/unknown", [], 422, ""),
    ("POST", "/v1/schedules/unknown/resume", {"catch_up": "yes"}, 422, "catch_up"),
    ("POST", "/v1/schedules/unknown/trigger", {"overlap": "sometimes"}, 422, "overlap"),
    ("POST", "/v1/schedules/unknown/trigger", {"definition": "other"}, 422, "definition"),
    ("POST", "/v1/schedules/unknown/backfill", {}, 422, "from"),
    ("POST", "/v1/schedules/preview", {}, 422, "trigger"),
    ("POST", "/v1/schedules/preview?from=2030-01-01T00:00:00Z", {}, 422, "from"),
    ("POST", "/v1/processors/p-1/drain", {"because": "a\nb"}, 422, "because"),
    ("POST", "/v1/processors/p-1/drain", [], 422, ""),
    ("PUT", "/v1/tenants/a", {"max_running": 0}, 422, "max_running"),
    ("PUT", "/v1/tenants/a", {"max_running": True}, 422, "max_running"),
]
BODIES: dict[tuple[str, str], list[tuple[Any, str]]] = {
    ("PUT", "/v1/calendars/a"): [
        ({"weekdays": ["monday"]}, "weekdays"), ({"weekdays": "mon"}, "weekdays"), ({"weekdays": ["mon-"]}, "weekdays"),
        ({"weekdays": ["mon"] * 15}, "weekdays"), ({"include": ["2030-02-30"]}, "include"), ({"days": []}, "days"),
        ({"exclude": ["2030-01-01"] * 1_001}, "exclude"), ({"exclude": [7]}, "exclude"),
    ],
    ("POST", "/v1/schedules"): [
        ({**TICK, "misfire": {"grace": "-1s"}}, "misfire.grace"), ({**TICK, "misfire": {"limit": 0}}, "misfire.limit"),
        ({**TICK, "misfire": {"catch_up": "some"}}, "misfire.catch_up"), ({**TICK, "misfire": "latest"}, "misfire"),
        ({**TICK, "misfire": {"limit": 1_001}}, "misfire.limit"), ({**TICK, "misfire": {"graze": 1}}, "misfire.graze"),
        ({**TICK, "overlap": "sometimes"}, "overlap"), ({**TICK, "paused": "yes"}, "paused"),
        *(({**TICK, "pause_after_failures": count}, "pause_after_failures") for count in (0, True)),
        ({**TICK, "job": job(render="yes")}, "job.render"),
        ({**TICK, "job": job(render=True, payload={"a": ["", "${day}"]})}, "job.payload.a.1"),
        *(({**TICK, "job": job(render=True, payload=text)}, "job.payload") for text in ("${label.team}", "${label.}")),
    ],
    ("POST", "/v1/schedules/preview"): [
        ({"trigger": {**_PARIS, "expression": "* * *"}}, "trigger.expression"),
        ({"trigger": {**_PARIS, "timezone": "Mars/X"}}, "trigger.timezone"),
        ({"trigger": {"type": "once", "at": "2029-12-31T23:59:59Z"}}, "trigger.at"),
        ({"trigger": {"type": "interval", "every": "1s", "jitter": "2s"}}, "trigger.jitter"),
        ({"name": "a b", "trigger": _PARIS}, "name"), ({"trigger": _PARIS, "job": {}}, "job"),
    ],
    ("POST", "/v1/jobs"): [
        (job(target=OPERATOR), "target.$gt"), (job(target="\u0085"), "target"),
        (job(definition="log\u200b"), "definition"), (job(definition="../etc/passwd"), "definition"),
        (job(tenant="*"), "tenant"), (job(tenant=["acme"]), "tenant"), (job(priority=10**400), "priority"),
        (job(priority=[5]), "priority"), (job(mode=["queued"]), "mode"), (job(mode="QUEUED"), "mode"),
        (job(payload=DEEP), "payload" + ".0" * 31), (job(payload="x" * 300_000), "payload"),
        (job(payload={"$set": {"state": "succeeded"}}), "payload.$set"), (job(labels={"a": "b" * 257}), "labels.a"),
        (job(labels={"": "b"}), "labels."), (job(labels={"$where": "1"}), "labels.$where"),
        (job(labels={f"l{n}": "" for n in range(65)}), "labels"),
        (job(expires_at="2029-12-31T23:59:59Z"), "expires_at"),
        (job(not_before="2030-02-01T00:00:00Z", expires_at="2030-01-15T00:00:00Z"), "expires_at"),
        (job(not_before="2030-02-30T00:00:00Z"), "not_before"),
        (job(not_before="٢٠٣٠-02-01T00:00:00Z"), "not_before"), (job(depends_on="job:1"), "depends_on"),
        (job(depends_on=[f"job:{n}" for n in range(1_001)]), "depends_on"),
        (job(on_dependency_failure="shrug"), "on_dependency_failure"), (job(attempt=7), "attempt"),
        (job(waits_for=[]), "waits_for"), (job(idempotency_key="mine"), "idempotency_key"),
        (job(batch="batch:1"), "batch"), (job(progress={"percent": 100}), "progress"), ({}, "definition"),
        ({"definition": "log", "id": "mine"}, "id"), ({"definition": "log", "state": "succeeded"}, "state"),
        ({"definition": "log", "submitted_at_ms": 0}, "submitted_at_ms"),
        ({"definition": "log", "not_before": "soon"}, "not_before"),
        ({"definition": "log", "not_before": 7}, "not_before"),
        ({"definition": "log", "labels": {"a": None}}, "labels.a"), ({"definition": "log", "tenant": ""}, "tenant"),
        ({"definition": "log", "resources": {"cpu": "1"}}, "resources.cpu"),
    ],
    ("POST", "/v1/jobs:batch"): [
        ({}, "jobs"), ([job()], ""), ({"jobs": [job()] * 1_001}, "jobs"),
        ({"jobs": [job()], "dry_run": True}, "dry_run"), ({"jobs": [job(payload={"$a": 1})]}, "jobs.0.payload.$a"),
    ],
    ("POST", "/v1/jobs/unknown/retry"): [
        ({"with_dependents": 1}, "with_dependents"), ({"with_dependants": True}, "with_dependants"), ([], ""),
    ],
    ("POST", "/v1/jobs/unknown/reprioritize"): [
        ({}, "priority"), ({"priority": 9.5}, "priority"), ({"priority": 9, "force": True}, "force"),
    ],
    ("POST", "/v1/jobs:cancel"): [
        ({"filter": {"id": ["a"]}}, "filter.id"), ({"filter": {"id": LONG_ID}}, "filter.id"),
        ({"filter": {"since": {"ne": 1}}}, "filter.since"), ({"filter": {"until": HUGE}}, "filter.until"),
        ({}, "filter"), ({"filter": {"state": OPERATOR}}, "filter.state.$gt"),
        ({"filter": {"tenant": OPERATOR}}, "filter.tenant.$gt"), ({"filter": {"$or": []}}, "filter.$or"),
        ({"filter": {"state": "sleeping"}}, "filter.state"),
        ({"filter": {"labels": {"a.b": 1}}}, "filter.labels.a.b"), ({"filter": {"target": "a\0"}}, "filter.target"),
        ({"filter": {"target": "a"}, "dry_run": "yes"}, "dry_run"),
        ({"filter": {"target": "a"}, "priority": 9}, "priority"),
        ({"filter": {"target": "a"}, "after": "job:1"}, "after"),
    ],
    ("PUT", "/v1/definitions/log"): [
        ({"retry": 3}, "retry"), ({"retry": {"lost_attempts": 101}}, "retry.lost_attempts"),
        ({"retry": {"backoff": "8d"}}, "retry.backoff"), ({"retry": {"factor": 1.0005}}, "retry.factor"),
        ({"unique": {"on_duplicate": "debounce"}}, "unique.period"), ({"unique": {"by": ["name"]}}, "unique.by.0"),
        ({"total_timeout": "29d"}, "total_timeout"),
        ({"timeuot": None}, "timeuot"), ({"timeout_ms": None}, "timeout_ms"),
        ({"retry": {"attempts_max": None}}, "retry.attempts_max"), ({"retry": {"backoff": "-1s"}}, "retry.backoff"),
        ({"retry": {"factor": 0.5}}, "retry.factor"), ({"retry": {"factor": 1.00001}}, "retry.factor"),
        ({"retry": {"max": "100d"}}, "retry.max"), ({"timeout": 0}, "timeout"), ({"timeout": "soon"}, "timeout"),
        ({"total_timeout": -1}, "total_timeout"), ({"max_concurrency": 0}, "max_concurrency"),
        ({"retry": {"attempts": 0}}, "retry.attempts"), ({"retry": {"attempts": 101}}, "retry.attempts"),
        ({"max_concurrency": "none"}, "max_concurrency"), ({"default_cost": "8d"}, "default_cost"),
        ({"default_cost": {"s": 1}}, "default_cost"), ({"conflict_group": ""}, "conflict_group"),
        ({"conflict_group": ["git"]}, "conflict_group"), ({"conflict_scope": "all"}, "conflict_scope"),
        ({"conflict_scope": ["tenant"]}, "conflict_scope"), ({"tier": 0}, "tier"), ({"tier": "high"}, "tier"),
        ({"rate_limit": 100}, "rate_limit"), ({"rate_limit": {"count": 100}}, "rate_limit.per"),
        ({"rate_limit": {"count": 0, "per": "1s"}}, "rate_limit.count"),
        ({"rate_limit": {"count": 1, "per": 0}}, "rate_limit.per"),
        ({"rate_limit": {"count": 1, "per": "1s", "burst": 2}}, "rate_limit.burst"),
        ({"key_limits": {}}, "key_limits"),
        ({"key_limits": [{"key": "payload", "max_concurrency": 1}]}, "key_limits.0.key"),
        ({"key_limits": [{"key": "target", "max_concurrency": 0}]}, "key_limits.0.max_concurrency"),
        ({"key_limits": [{"key": f"payload.{n}", "max_concurrency": 1} for n in range(5)]}, "key_limits"),
        ({"unique": 5}, "unique"), ({"unique": {"by": "target"}}, "unique.by"),
        ({"unique": {"by": [f"payload.{n}" for n in range(5)]}}, "unique.by"),
        ({"unique": {"on_duplicate": "drop"}}, "unique.on_duplicate"),
        ({"unique": {"on_duplicate": ["replace"]}}, "unique.on_duplicate"),
        ({"unique": {"on_duplicate": "replace", "period": "1h"}}, "unique.period"),
        ({"unique": {"period": 0}}, "unique.period"), ({"unique": {"max_wait": "1h"}}, "unique.max_wait"),
        ({"unique": {"on_duplicate": "debounce", "period": "1m", "max_wait": "71d"}}, "unique.max_wait"),
        ({"unique": {"key": "target"}}, "unique.key"), ({"resources": {"slots": 1}}, "resources.slots"),
        ({"resources": {"cpu": "2"}}, "resources.cpu"), ({"name": "log"}, "name"),
    ],
    ("PUT", "/v1/tenants/acme"): [
        ({"max_pending": 0}, "max_pending"), ({"max_pending": 10**18}, "max_pending"),
        ({"max_schedules": 0}, "max_schedules"), ({"max_schedules": True}, "max_schedules"),
        ({"fire_rate": {"count": 0, "per": "1s"}}, "fire_rate.count"),
        ({"fire_rate": {"count": 1, "per": "0s"}}, "fire_rate.per"), ({"fire_rate": "600/1m"}, "fire_rate"),
        ({"submit_rate": 100}, "submit_rate"), ({"submit_rate": {"count": 1}}, "submit_rate.per"),
        ({"submit_rate": {"count": 0, "per": "1s"}}, "submit_rate.count"),
        ({"submit_rate": {"count": 1, "per": "0s"}}, "submit_rate.per"),
        ({"submit_rate": {"count": 2**63, "per": "1s"}}, "submit_rate.count"),
    ],
    ("POST", "/v1/tokens"): [
        ({}, "name"), ({"name": "a", "role": "root", "tenant": "*"}, "role"),
        ({"name": "a", "role": ["admin"], "tenant": "*"}, "role"),
        ({"name": "a", "role": "viewer", "tenant": "a/b"}, "tenant"),
        ({"name": "a\r\nb", "role": "viewer", "tenant": "*"}, "name"),
        ({"name": "a", "role": "viewer", "tenant": "*", "expires_in": "-1s"}, "expires_in"),
        ({"name": "a", "role": "viewer", "tenant": "*", "expires_in": "999999d"}, "expires_in"),
        ({"name": "a", "role": "viewer", "tenant": "*", "digest": "0"}, "digest"),
        ({"name": "a", "role": "worker", "tenant": "acme"}, "tenant"),
    ],
    ("POST", "/v1/work/processors"): [
        ({}, "name"), ({"name": "p", "definitions": []}, "definitions"),
        ({"name": "p", "definitions": [OPERATOR]}, "definitions.0.$gt"),
        ({"name": "p", "definitions": ["log"], "slots": 0}, "slots"),
        ({"name": "p", "definitions": ["log"], "slots": 10**9}, "slots"),
        ({"name": "p", "definitions": ["log"], "id": "mine"}, "id"),
    ],
    ("POST", "/v1/work/fetch"): [
        ({}, "processor"), ({"processor": OPERATOR}, "processor.$gt"), ({"processor": _P, "wait": "61s"}, "wait"),
        ({"processor": _P, "wait": -1}, "wait"), ({"processor": _P, "limit": 0}, "limit"),
        ({"processor": _P, "running": [_ATTEMPT]}, "running.0.processor"),
    ],
    ("POST", "/v1/work/start"): [
        ({"processor": _P, "job": "job:1"}, "attempt"), ({**_ATTEMPT, "attempt": "1"}, "attempt"),
        ({**_ATTEMPT, "job": OPERATOR}, "job.$gt"),
    ],
    ("POST", "/v1/work/heartbeat"): [
        ({"processor": _P, "running": [{"job": "j", "attempt": 1, "percent": 101}]}, "running.0.percent"),
        ({"processor": _P, "running": [{"job": "j", "attempt": 1, "text": "a" * 501}]}, "running.0.text"),
        ({"processor": _P, "draining": 1}, "draining"),
    ],
    ("POST", "/v1/work/finish"): [
        ({**_FAILED, "result": 1}, ""), ({**_FAILED, "retry_after": "8d"}, "retry_after"),
        ({**_FAILED, "retryable": "no"}, "retryable"), ({**_ATTEMPT, "outcome": "given_back", "result": 1}, ""),
        ({**_ATTEMPT, "outcome": "exploded"}, "outcome"), ({**_ATTEMPT, "outcome": "failed"}, ""),
        ({**_ATTEMPT, "outcome": "succeeded", "retry_after": "1s"}, ""),
        ({**_ATTEMPT, "outcome": "succeeded", "result": "x" * 300_000}, "result"),
        ({**_ATTEMPT, "outcome": "succeeded", "result": {"$a": 1}}, "result.$a"),
    ],
    ("POST", "/v1/schedules/unknown/pause"): [
        ({"because": ""}, "because"), ({"because": "a\nb"}, "because"), ([], ""),
    ],
    ("POST", "/v1/cluster/pause"): [
        ({}, "because"), ({"because": {"$gt": ""}}, "because.$gt"),
        ({"because": "a", "schedules_only": 1}, "schedules_only"), ({"because": "a", "by": "me"}, "by"),
    ],
    ("PUT", "/v1/lanes/a"): [
        ({"weight": 0}, "weight"), ({"weight": True}, "weight"), ({"promote_after": "999ms"}, "promote_after"),
        ({"promote_after": {"0": "1m"}}, "promote_after"), ({"policy": "luck"}, "policy"),
        ({"policy": "x," * 50_000}, "policy"),
    ],
}  # fmt: skip
"""What is refused with 422 by each of these requests, and the path of what is wrong in it."""
QUERIES: dict[str, list[str | tuple[str, str]]] = {
    "/v1/jobs": [
        ("state=PENDING", "state.0"), "definition[$gt]=", "tenant[$ne]=x", "schedule=" + "a" * 257,
        "batch=" + "a" * 10_240, ("label=$where=1", "label.0"), ("label=" + "a" * 10_240, "label.0"), "limit=-1",
        f"limit={HUGE}", f"after={LONG_ID}", "after[$gt]=", "sort=payload", "id[$gt]=", "id=" + "a" * 321,
        ("state=sleeping", "state.0"), "state[$ne]=pending", "stat=pending", "id=",
    ],
    "/v1/jobs:counts": [
        "limit=1", ("state=$ne", "state.0"), "id=", "id=" + "x" * 321,
    ],
    "/v1/jobs:errors": [
        "state=failed", "error[$regex]=.", "id=", "id=" + "x" * 321,
    ],
    "/v1/schedules": [
        "text[$regex]=.", "text=" + "a" * 10_240, ("label=team", "label.0"),
        ("&".join(f"label=l{n}=" for n in range(65)), "label"), "limit=0", "limit=", "offset=3",
        f"after={'a' * 600}", "text=", "text=" + "x" * 129, ("state=gone", "state.0"),
        ("verdict=fired", "verdict.0"),
    ],
    "/v1/schedules:counts": [
        ("state=paused;drop", "state.0"), "text=", "text=" + "x" * 129, ("state=gone", "state.0"),
        ("verdict=fired", "verdict.0"),
    ],
    "/v1/tokens": [
        "after[$gt]=", "limit=0",
    ],
    "/v1/audit": [
        "since=yesterday", "who[$regex]=.*", f"path=/{LONG_ID}",
    ],
    "/v1/events": [
        ("type=exploded", "type.0"), "after=soon", f"after={HUGE}", "job=" + "j" * 257, "tenant[$ne]=x",
        "tenant=a%0ab", "schedule=a/b", "shard=a/b", "shard=0009", "keepalive=199ms", "keepalive=31s",
        "keepalive=0", "keepalive=-1s", "keepalive=soon", "keepalive=",
    ],
    "/v1/schedules/unknown/preview": [
        "count=0", "count=1001", "from=now",
    ],
    "/v1/schedules/unknown/verdicts": [
        ("verdict=lost", "verdict.0"), "after=soon", "after=" + "9" * 40,
    ],
    "/v1/timeline": [
        "behind=8d", "ahead=8d", "ahead=-1h", "limit=201", "limit=0", "text=", "text=" + "x" * 129,
        ("label=team", "label.0"), "after=" + "x" * 513, "before=now",
    ],
    "/v1/cluster/failovers": [
        "limit=0", "limit=21", "limit=-1", "limit=many", "limit=", "after=3",
    ],
    "/v1/cluster/recording": [
        "for=forever", "for=-1s", "for=0", "for=2h", "for=",
    ],
    "/v1/verdicts": [
        ("verdict=fired", "verdict.0"), "after=b:1", "since=yesterday", "schedule=a",
    ],
    "/v1/jobs/job:1": [
        "wait=-1s", "wait=301s", "wait=soon", "wait=", "wiat=3s",
    ],
}  # fmt: skip
"""What is refused with 422 after each of these paths, and where: at the parameter, if nothing else is said."""
BATCH_ITEMS: list[tuple[Any, int, str]] = [
    (None, 422, ""),
    ([], 422, ""),
    ({}, 422, "definition"),
    (job(colour="red"), 422, "colour"),
    (job(ref=""), 422, "ref"),
    (job(ref="good"), 422, "ref"),
    (job(depends_on=["ref:nobody"]), 422, "depends_on.0"),
    (job(depends_on=["job:unknown"]), 422, "depends_on.0"),
    (job(idempotency_key=""), 422, "Idempotency-Key"),
    (job(idempotency_key="schlüssel"), 422, "Idempotency-Key"),
    (job(idempotency_key=7), 422, "idempotency_key"),
    (job(expires_at="2001-01-01T00:00:00Z"), 422, "expires_at"),
    (job(priority=11), 422, "priority"),
    (job(payload="x" * 300_000), 422, "payload"),
]
"""Each beside a good one, whose ref is ``good``: (what is sent, its status, the path within it)."""
EACH_NOUN: list[Row] = []
for noun in ("definitions", "lanes", "calendars", "tenants"):
    EACH_NOUN += [
        ("PUT", f"/v1/{noun}/*", {}, 422, "name"),
        ("PUT", f"/v1/{noun}/a", [], 422, ""),
        ("PUT", f"/v1/{noun}/a", {"rev": 7}, 422, "rev"),
        ("PATCH", f"/v1/{noun}/unknown", {}, 404, None),
        ("PATCH", f"/v1/{noun}/*", {}, 422, "name"),
        ("PATCH", f"/v1/{noun}/unknown", 7, 422, ""),
        ("DELETE", f"/v1/{noun}/unknown", None, 404, None),
        ("GET", f"/v1/{noun}/unknown", None, 404, None),
        ("GET", f"/v1/{noun}/%00", None, 404, None),
        ("POST", f"/v1/{noun}/a", {}, 405, None),
        ("GET", f"/v1/{noun}?limit=0", None, 422, "limit"),
        ("GET", f"/v1/{noun}?label=a=b", None, 422, "label"),
    ]
ROWS: list[Row] = [
    *((method, path, None, 404, None) for method, path in map(str.split, NOT_THERE)),
    *((method, path, None, 405, None) for method, path in map(str.split, NOT_ALLOWED)),
    *OTHERS,
    *EACH_NOUN,
    *((*request, body, 422, field) for request, rows in BODIES.items() for body, field in rows),
    *(
        ("GET", f"{path}?{query}", None, 422, field)
        for path, rows in QUERIES.items()
        for query, field in ((row, row.partition("=")[0]) if isinstance(row, str) else row for row in rows)
    ),
]
