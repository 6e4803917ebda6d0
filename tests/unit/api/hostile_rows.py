"""Hostile requests that break no rule of one field: each with its answer. Those that do are made from the document.

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
    "GET /v1/jobs/%ed%a0%80", "POST /v1/jobs/unknown/retry", "DELETE /v1/tokens/%00",
    "DELETE /v1/work/processors/p-1.bb", "GET /v1/nothing", "GET /v1/schedules/", "GET /v1/schedules/a/b",
    "GET /v1/schedules/..%2f..%2fetc", "GET /v1/schedules/%00", "GET /v1/schedules/%ff%fe", "GET /v1/schedules/$where",
    "DELETE /v1/schedules/unknown", "POST /v1/schedules/unknown/pause", "POST /v1/schedules/unknown/trigger",
    "GET /v1/schedules/unknown/preview", "GET /v1/schedules/unknown/verdicts", "POST /v1/jobs/unknown/cancel",
    "POST /v1/processors/unknown/undrain", "GET /v1/jobs/%00/why", "POST /v1/jobs:nothing",
]  # fmt: skip
NOT_ALLOWED = [
    "GET /v1/jobs:batch", "DELETE /v1/jobs/job:1", "GET /v1/jobs/unknown/retry", "POST /v1/jobs:counts",
    "DELETE /v1/tokens", "DELETE /v1/audit", "GET /v1/work/fetch", "DELETE /v1/cluster", "POST /v1/schedules/tick",
    "POST /metrics",
]  # fmt: skip
OTHERS: list[Row] = [
    ("GET", f"/v1/jobs/{LONG_ID}", None, 404, None),
    ("DELETE", f"/v1/tokens/{LONG_ID}", None, 404, None),
    ("POST", "/v1/jobs/unknown/retry", {"with_dependents": True}, 404, None),
    ("POST", "/v1/jobs/unknown/reprioritize", {"priority": 9}, 404, None),
    ("POST", "/v1/work/start", _ATTEMPT, 409, None),
    ("POST", "/v1/work/start", {**_ATTEMPT, "processor": "p-1.bb"}, 404, None),
    ("PATCH", "/v1/schedules/unknown", {}, 404, None),
    ("PATCH", "/v1/schedules/unknown", [], 422, ""),
    ("PATCH", "/v1/schedules/%24a", {}, 422, "name"),
    ("PUT", "/v1/schedules/tock", TICK, 422, "name"),
    ("POST", "/v1/schedules/unknown/preview", {}, 404, None),
    ("POST", "/v1/cluster/pause", None, 415, None),
    ("POST", f"/v1/processors/{'p' * 257}/drain", None, 422, "name"),
    ("POST", "/v1/jobs?wait=%D9%A3s", job(), 422, "wait"),
    ("POST", "/v1/schedules:pause", {"filter": {}}, 422, "filter"),
    ("POST", "/v1/schedules:reset", {"filter": {"text": "a"}, "after": "a b"}, 422, "after"),
    ("POST", "/v1/schedules:trigger", {"filter": {"text": "a"}}, 422, "Idempotency-Key"),
    ("POST", "/v1/schedules/preview?from=2030-01-01T00:00:00Z", {}, 422, "from"),
    ("POST", "/v1/processors/p-1/drain", {"because": "a\nb"}, 422, "because"),
]
BODIES: dict[tuple[str, str], list[tuple[Any, str]]] = {
    ("PUT", "/v1/calendars/a"): [
        ({"weekdays": ["monday"]}, "weekdays"), ({"weekdays": ["mon-"]}, "weekdays"),
        ({"include": ["2030-02-30"]}, "include"), ({"exclude": ["2030-01-01"] * 1_001}, "exclude"),
    ],
    ("POST", "/v1/schedules"): [
        ({**TICK, "misfire": {"grace": "-1s"}}, "misfire.grace"), ({**TICK, "misfire": {"graze": 1}}, "misfire.graze"),
        ({**TICK, "job": job(render=True, payload={"a": ["", "${day}"]})}, "job.payload.a.1"),
        *(({**TICK, "job": job(render=True, payload=text)}, "job.payload") for text in ("${label.team}", "${label.}")),
    ],
    ("POST", "/v1/schedules/preview"): [
        ({"trigger": {**_PARIS, "expression": "* * *"}}, "trigger.expression"),
        ({"trigger": {"type": "interval", "every": "1s", "jitter": "2s"}}, "trigger.jitter"),
        ({"trigger": _PARIS, "job": {}}, "job"),
    ],
    ("POST", "/v1/jobs"): [
        ([], ""), ({}, "definition"), (job(target="\u0085"), "target"), (job(definition="log\u200b"), "definition"),
        (job(tenant="*"), "tenant"), (job(priority=10**400), "priority"), (job(payload=DEEP), "payload" + ".0" * 31),
        (job(payload="x" * 300_000), "payload"), (job(payload={"$set": {"state": "succeeded"}}), "payload.$set"),
        (job(labels={"a": "b" * 257}), "labels.a"), (job(labels={"": "b"}), "labels."),
        (job(labels={"$where": "1"}), "labels.$where"), (job(labels={f"l{n}": "" for n in range(65)}), "labels"),
        (job(expires_at="2029-12-31T23:59:59Z"), "expires_at"),
        (job(not_before="2030-02-01T00:00:00Z", expires_at="2030-01-15T00:00:00Z"), "expires_at"),
        (job(not_before="2030-02-30T00:00:00Z"), "not_before"), (job(not_before="٢٠٣٠-02-01T00:00:00Z"), "not_before"),
        (job(depends_on=[f"job:{n}" for n in range(1_001)]), "depends_on"), (job(attempt=7), "attempt"),
        (job(waits_for=[]), "waits_for"), (job(idempotency_key="mine"), "idempotency_key"), (job(id="mine"), "id"),
        (job(resources={"slots": 1}), "resources.slots"), (job(resources={"a.b": 1}), "resources.a.b"),
    ],
    ("POST", "/v1/jobs:batch"): [
        ([job()], ""), ({"jobs": [job()] * 1_001}, "jobs"), ({"jobs": [job(payload={"$a": 1})]}, "jobs.0.payload.$a"),
    ],
    ("POST", "/v1/jobs:cancel"): [
        ({"filter": {"since": {"ne": 1}}}, "filter.since"), ({"filter": {"$or": []}}, "filter.$or"),
        ({"filter": {"labels": {"a.b": 1}}}, "filter.labels.a.b"), ({"filter": {"target": "a\0"}}, "filter.target"),
        ({"filter": {"target": "a"}, "priority": 9}, "priority"), ({"filter": {"error": "<n>" * 25}}, "filter.error"),
        ({"filter": {"error": "a", "state": "cancelled"}}, "filter.error"),
        ({"filter": {"failed_since": "1d"}}, "filter.failed_since"), ({"filter": {"error": "a\nb"}}, "filter.error"),
        ({"filter": {"target": "a"}, "after": "job:1"}, "after"),
    ],
    ("PUT", "/v1/definitions/log"): [
        ({"retry": {"backoff": "8d"}}, "retry.backoff"), ({"retry": {"backoff": "-1s"}}, "retry.backoff"),
        ({"retry": {"factor": 0.5}}, "retry.factor"), ({"retry": {"factor": 1.00001}}, "retry.factor"),
        ({"retry": {"max": "100d"}}, "retry.max"), ({"timeout": 0}, "timeout"),
        ({"total_timeout": "29d"}, "total_timeout"),
        ({"timeout": "2h", "total_timeout": "1h"}, "total_timeout"), ({"default_cost": "8d"}, "default_cost"),
        ({"timeout_ms": None}, "timeout_ms"), ({"retry": {"attempts_max": None}}, "retry.attempts_max"),
        ({"rate_limit": {"count": 100}}, "rate_limit.per"), ({"rate_limit": {"count": 1, "per": 0}}, "rate_limit.per"),
        ({"key_limits": [{"key": "payload", "max_concurrency": 1}]}, "key_limits.0.key"),
        ({"key_limits": [{"key": f"payload.{n}", "max_concurrency": 1} for n in range(5)]}, "key_limits"),
        ({"unique": {"by": ["name"]}}, "unique.by.0"), ({"unique": {"on_duplicate": "debounce"}}, "unique.period"),
        ({"unique": {"on_duplicate": "replace", "period": "1h"}}, "unique.period"),
        ({"unique": {"period": 0}}, "unique.period"), ({"unique": {"max_wait": "1h"}}, "unique.max_wait"),
        ({"unique": {"on_duplicate": "debounce", "period": "1m", "max_wait": "71d"}}, "unique.max_wait"),
    ],
    ("PUT", "/v1/tenants/acme"): [
        ({"fire_rate": {"count": 1, "per": "0s"}}, "fire_rate.per"), ({"submit_rate": {"count": 1}}, "submit_rate.per"),
    ],
    ("POST", "/v1/tokens"): [
        ({"name": "a", "role": "viewer", "tenant": "a/b"}, "tenant"),
        ({"name": "a\r\nb", "role": "viewer", "tenant": "*"}, "name"),
        ({"name": "a", "role": "viewer", "tenant": "*", "expires_in": "999999d"}, "expires_in"),
        ({"name": "a", "role": "viewer", "tenant": "*", "digest": "0"}, "digest"),
        ({"name": "a", "role": "worker", "tenant": "acme"}, "tenant"),
    ],
    ("POST", "/v1/work/processors"): [
        ({"name": "p", "definitions": []}, "definitions"),
        ({"name": "p", "definitions": [OPERATOR]}, "definitions.0.$gt"),
    ],
    ("POST", "/v1/work/fetch"): [
        ({"processor": _P, "wait": "61s"}, "wait"), ({"processor": _P, "running": [_ATTEMPT]}, "running.0.processor"),
    ],
    ("POST", "/v1/work/heartbeat"): [
        ({"processor": _P, "running": [{"job": "j", "attempt": 1, "percent": 101}]}, "running.0.percent"),
        ({"processor": _P, "running": [{"job": "j", "attempt": 1, "text": "a" * 501}]}, "running.0.text"),
    ],
    ("POST", "/v1/work/finish"): [
        ({**_FAILED, "result": 1}, ""), ({**_FAILED, "retry_after": "8d"}, "retry_after"),
        ({**_ATTEMPT, "outcome": "given_back", "result": 1}, ""), ({**_ATTEMPT, "outcome": "failed"}, ""),
        ({**_ATTEMPT, "outcome": "succeeded", "retry_after": "1s"}, ""),
        ({**_ATTEMPT, "outcome": "succeeded", "result": "x" * 300_000}, "result"),
        ({**_ATTEMPT, "outcome": "succeeded", "result": {"$a": 1}}, "result.$a"),
    ],
    ("PUT", "/v1/lanes/a"): [
        ({"promote_after": "999ms"}, "promote_after"), ({"promote_after": {"0": "1m"}}, "promote_after"),
        ({"policy": "luck"}, "policy"), ({"policy": "x," * 50_000}, "policy"),
    ],
}  # fmt: skip
"""What is refused with 422 by each of these requests, and the path of what is wrong in it."""
QUERIES: dict[str, list[str | tuple[str, str]]] = {
    "/v1/jobs": [
        "definition[$gt]=", "batch=" + "a" * 10_240, ("label=$where=1", "label.0"), f"limit={HUGE}", "after[$gt]=",
        "sort=payload", ("state=sleeping", "state.0"), "state[$ne]=pending",
    ],
    "/v1/jobs:errors": ["state=failed", "error[$regex]=."],
    "/v1/schedules": [
        "text[$regex]=.", ("label=team", "label.0"), ("&".join(f"label=l{n}=" for n in range(65)), "label"), "limit=",
        ("verdict=fired", "verdict.0"), "sort=payload", ("sort=next&after=tick", "after"), ("late=perhaps", "late"),
        ("sort=trouble&after=" + "9" * 40 + ":a", "after"),
    ],
    "/v1/schedules:counts": [("state=paused;drop", "state.0"), "sort=trouble"],
    "/v1/schedules:recent": [("name=a/b", "name.0"), ("&".join(f"name=s{n}" for n in range(51)), "name"), "limit=9"],
    "/v1/audit": ["since=yesterday", "who[$regex]=.*", f"path=/{LONG_ID}"],
    "/v1/events": [
        ("type=exploded", "type.0"), "after=soon", f"after={HUGE}", "tenant=a%0ab", "schedule=a/b", "shard=0009",
        "keepalive=199ms", "keepalive=31s", "keepalive=",
    ],
    "/v1/schedules/unknown/preview": ["count=1001", "from=now"],
    "/v1/schedules/unknown/verdicts": [("verdict=lost", "verdict.0"), "after=soon", "after=" + "9" * 40],
    "/v1/timeline": ["behind=8d", "ahead=-1h"],
    "/v1/cluster/recording": ["for=0", "for=2h"],
    "/v1/verdicts": ["after=b:1"],
    "/v1/jobs/job:1": ["wait=301s", "wait=soon", "wiat=3s"],
}  # fmt: skip
"""What is refused with 422 after each of these paths, and where: at the parameter, if nothing else is said."""
BATCH_ITEMS: list[tuple[Any, int, str]] = [
    (None, 422, ""),
    ({}, 422, "definition"),
    (job(colour="red"), 422, "colour"),
    (job(ref="good"), 422, "ref"),
    (job(depends_on=["ref:nobody"]), 422, "depends_on.0"),
    (job(depends_on=["job:unknown"]), 422, "depends_on.0"),
    (job(idempotency_key="schlüssel"), 422, "Idempotency-Key"),
    (job(idempotency_key=7), 422, "idempotency_key"),
    (job(payload="x" * 300_000), 422, "payload"),
]
"""Each beside a good one, whose ref is ``good``: (what is sent, its status, the path within it)."""
EACH_NOUN: list[Row] = []
for noun in ("definitions", "lanes", "calendars", "tenants"):
    EACH_NOUN += [
        ("PUT", f"/v1/{noun}/*", {}, 422, "name"),
        ("PUT", f"/v1/{noun}/a", {"rev": 7}, 422, "rev"),
        ("PATCH", f"/v1/{noun}/unknown", {}, 404, None),
        ("PATCH", f"/v1/{noun}/unknown", 7, 422, ""),
        ("DELETE", f"/v1/{noun}/unknown", None, 404, None),
        ("GET", f"/v1/{noun}/%00", None, 404, None),
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
