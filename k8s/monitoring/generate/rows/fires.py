"""Do schedules fire when they should?"""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines
from k8s.monitoring.generate.queries import quantile, rate, told

FIRES = Row(
    "Fires",
    [
        lines(
            "Verdicts",
            {"{{verdict}}": rate("hascheduler_verdicts_total", "verdict")},
            "What became of nominal times. Well: fired, and whatever the schedules' own policies make of the rest; "
            "never missed.",
            unit="ops",
        ),
        lines(
            "Fire lag",
            {
                "p50": quantile(0.5, "hascheduler_fire_lag_seconds"),
                "p99": quantile(0.99, "hascheduler_fire_lag_seconds"),
            },
            "From due time to the stored job. Well: p99 below a second; a takeover shows as one peak. Above the red "
            "line for 5 minutes it pages.",
            unit="s",
            limit=5,
        ),
        lines(
            "Schedule to start, p99, by definition",
            {"{{definition}}": quantile(0.99, "hascheduler_schedule_to_start_seconds", "definition")},
            "From when a job was due (or submitted, or allowed) to its start: fire lag, waiting and delivery together. "
            "Well: steady; it grows where slots are short.",
            unit="s",
        ),
        lines(
            "Schedules and definitions",
            {
                "{{state}} schedules": told("hascheduler_schedules", "state"),
                "definitions": told("hascheduler_definitions"),
            },
            "How many there are. Well: as many as you have made.",
        ),
        lines(
            "Decisions",
            {"{{kind}}": rate("hascheduler_decisions_total", "kind")},
            "What the leader decides, by kind. Well: dispatches follow fires and submits; requeues are few.",
            unit="ops",
        ),
        lines(
            "Claims lost",
            {"lost": rate("hascheduler_claims_lost_total")},
            "Decisions that something else was faster than, such as a cancel. Well: next to none. Many: the leader's "
            "mirror is behind.",
            unit="ops",
        ),
    ],
)
