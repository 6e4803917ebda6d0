"""What clients of the HTTP API meet."""

from tests.unit.monitoring.cases.case import NAMESPACE, Case, Fires, told

REQUESTS = "hascheduler_http_requests_total"
REFUSALS = "hascheduler_admission_refusals_total"

CASES = (
    Case(
        "ApiFailing",
        "a tenth of the answers",
        "15m",
        {
            told(REQUESTS, route="/v1/jobs", method="POST", status="202"): "0+90x80",
            told(REQUESTS, route="/v1/jobs", method="POST", status="503"): "0+10x80",
        },
        (Fires("10% of the API's answers are errors of ours (5xx) in hascheduler"),),
    ),
    Case(
        "ApiFailing",
        "a tenth of the answers, on the one replica that refuses nothing",
        "15m",
        {
            told(REQUESTS, 0, route="/v1/jobs", method="POST", status="202"): "0+90x80",
            told(REQUESTS, 0, route="/v1/jobs", method="POST", status="500"): "0+10x80",
            told(REFUSALS, 0, reason="rate"): "0+50x80",
            told(REFUSALS, 0, reason="total_pending"): "0x80",
        },
        (Fires("10% of the API's answers are errors of ours (5xx) in hascheduler"),),
    ),
    Case(
        "ApiFailing",
        "they are refusals because too many jobs wait",
        "15m",
        {
            told(REQUESTS, route="/v1/jobs", method="POST", status="202"): "0+90x80",
            told(REQUESTS, route="/v1/jobs", method="POST", status="503"): "0+10x80",
            told(REFUSALS, reason="total_pending"): "0+10x80",
        },
    ),
    Case(
        "ApiFailing",
        "they are answers to a probe",
        "15m",
        {
            told(REQUESTS, route="/v1/jobs", method="POST", status="202"): "0+90x80",
            told(REQUESTS, route="/readyz", method="GET", status="503"): "0+50x80",
        },
    ),
    Case(
        "ApiFailing",
        "for two minutes",
        "13m",
        {
            told(REQUESTS, route="/v1/jobs", method="POST", status="202"): "0+90x80",
            told(REQUESTS, route="/v1/jobs", method="POST", status="503"): "0x40 0+100x8 800x40",
        },
    ),
    Case(
        "ApiFailing",
        "twice in a quiet night",
        "16m",
        {
            told(REQUESTS, route="/v1/jobs", method="POST", status="202"): "1x80",
            told(REQUESTS, route="/v1/jobs", method="POST", status="500"): "0x40 1x12 2x40",
        },
    ),
    Case(
        "Refusing",
        "a tenant in a loop",
        "40m",
        {told(REFUSALS, 0, reason="rate"): "0+15x200", told(REFUSALS, 1, reason="rate"): "0+15x200"},
        (
            Fires(
                "2 submits a second are refused (rate) in hascheduler",
                {"namespace": NAMESPACE, "reason": "rate"},
            ),
        ),
    ),
    Case("Refusing", "a burst", "25m", {told(REFUSALS, reason="rate"): "0x60 500x140"}),
)
