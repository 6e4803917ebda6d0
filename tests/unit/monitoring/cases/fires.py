"""Whether schedules fire when they should."""

from tests.unit.monitoring.cases.case import Case, Fires, told

LAG = "hascheduler_fire_lag_seconds_bucket"

CASES = (
    Case(
        "FiresLate",
        "all of them",
        "12m",
        {
            told(LAG, le="10"): "0x60",
            told(LAG, le="30"): "0+4x60",
            told(LAG, le="+Inf"): "0+4x60",
        },
        (Fires("One fire in a hundred comes 29.8s late or more in hascheduler"),),
    ),
    Case(
        "FiresLate",
        "once, after a takeover",
        "9m",
        {
            told(LAG, le="1"): "0+4x20 80x2 80+4x40",
            told(LAG, le="10"): "0+4x20 80x2 80+4x40",
            told(LAG, le="30"): "0+4x20 82x2 82+4x40",
            told(LAG, le="+Inf"): "0+4x20 82x2 82+4x40",
        },
    ),
    Case(
        "FiresLate",
        "the only fire within hours, after a takeover",
        "9m45s",
        {told(LAG, le="10"): "0x60", told(LAG, le="30"): "0x20 1x40", told(LAG, le="+Inf"): "0x20 1x40"},
    ),
    Case("FiresLate", "nothing fires", "12m", {told(LAG, le="10"): "0x60", told(LAG, le="+Inf"): "0x60"}),
    Case(
        "FiresMissed",
        "after an outage",
        "8m",
        {
            told("hascheduler_verdicts_total", 0, verdict="missed"): "0x20 30x60",
            told("hascheduler_verdicts_total", 1, verdict="missed"): "0x80",
            told("hascheduler_verdicts_total", 0, verdict="fired"): "0+4x80",
        },
        (Fires("30 times were missed in hascheduler"),),
    ),
    Case(
        "FiresMissed",
        "long ago, before the leader changed",
        "20m",
        {
            told("hascheduler_verdicts_total", 0, verdict="missed"): "30x80",
            told("hascheduler_verdicts_total", 1, verdict="missed"): "0x80",
        },
    ),
    Case(
        "FiresMissed",
        "fired, skipped and coalesced are no misses",
        "8m",
        {
            told("hascheduler_verdicts_total", verdict=verdict): "0+1x80"
            for verdict in ("fired", "skipped", "coalesced")
        },
    ),
    Case(
        "FiresUnstorable",
        "a schedule whose payload grows too large",
        "8m",
        {told("hascheduler_verdicts_total", verdict="unstorable"): "0x20 30x60"},
        (Fires("30 times came to no job, as it could not be stored in hascheduler"),),
    ),
    Case(
        "FiresUnstorable",
        "missed ones are no such",
        "8m",
        {
            told("hascheduler_verdicts_total", verdict="unstorable"): "0x80",
            told("hascheduler_verdicts_total", verdict="missed"): "0+1x80",
        },
    ),
)
