"""What do clients of the API meet?"""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines
from k8s.monitoring.generate.queries import quantile, rate

API = Row(
    "API",
    [
        lines(
            "Requests by status",
            {"{{status}}": rate("hascheduler_http_requests_total", "status")},
            "Well: 2xx. 4xx is what callers get wrong; 429 and some 503 are admission; other 5xx are ours.",
            unit="reqps",
        ),
        lines(
            "Errors by route",
            {"{{method}} {{route}}": rate("hascheduler_http_requests_total", "method", "route", status="~5..")},
            "5xx answers. Well: none; where a readyz stands here, a replica is not ready.",
            unit="reqps",
        ),
        lines(
            "Time, p99, by route",
            {"{{method}} {{route}}": quantile(0.99, "hascheduler_http_request_seconds", "method", "route")},
            "Well: a write is one majority write, some ten milliseconds. Submits that wait (`?wait=`) and event "
            "streams take as long as their clients want.",
            unit="s",
        ),
        lines(
            "Refusals, and connections cut",
            {
                "{{reason}}": rate("hascheduler_admission_refusals_total", "reason"),
                "{{pool}}: {{reason}}": rate("hascheduler_share_refusals_total", "pool", "reason"),
                "connection: {{reason}}": rate("hascheduler_connections_cut_total", "reason"),
                "no audit record: {{reason}}": rate("hascheduler_audit_left_out_total", "reason"),
            },
            "Submits turned away before anything was written; requests and connections for which a pool had no room or "
            "their token or address no share left; changes asked for by strangers, or refused again and again, that "
            "leave no audit record. Well: none; a flood shows here, and not in the waits.",
            unit="reqps",
        ),
    ],
    abreast=4,
)
