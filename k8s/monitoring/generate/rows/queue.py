"""Who waits, for how long, and is that within what is promised?"""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines
from k8s.monitoring.generate.queries import rate, told

QUEUE = Row(
    "Queue and waits",
    [
        lines(
            "Jobs",
            {
                "{{state}}": told("hascheduler_jobs", "state"),
                "dependencies": told("hascheduler_job_dependencies"),
            },
            "Jobs that have not ended, and how many jobs and batches they wait for. Well: pending comes back to its "
            "usual level; dispatched is a moment's state; dependencies stay far below HASCHEDULER_MAX_DEPENDENCIES.",
        ),
        lines(
            "Oldest wait by lane, against the bound",
            {
                "{{lane}}": told("hascheduler_wait_oldest_seconds", "lane"),
                "bound": told("hascheduler_wait_bound_seconds"),
            },
            "Age of the oldest due job of each lane. After the bound nobody overtakes it any more. Well: below the "
            "bound; above it although slots are free, a rule holds it back: ask `hascheduler why`.",
            unit="s",
            limit_series="bound",
        ),
        lines(
            "Unschedulable",
            {"jobs": told("hascheduler_jobs_unschedulable")},
            "Waiting jobs that no living processor could ever run. Well: 0, but for the minutes of a deployment.",
            limit=1,
        ),
        lines(
            "Paused",
            {"{{what}}": told("hascheduler_paused", "what")},
            "1 while people have paused everything; `hascheduler cluster` says who, since when and why. Well: 0.",
            limit=1,
        ),
        lines(
            "Pending by lane",
            {"{{lane}}": told("hascheduler_lane_jobs", "lane", state="pending")},
            "Well: no lane grows without end while others are empty; weights share the slots.",
            stacked=True,
        ),
        lines(
            "Pending by tenant",
            {"{{tenant}}": told("hascheduler_tenant_jobs", "tenant", state="pending")},
            "Well: a tenant's flood stays its own. At most 100 tenants have a line of their own; the rest are `other`.",
            stacked=True,
        ),
        lines(
            "Pending by definition",
            {"{{definition}}": told("hascheduler_definition_jobs", "definition", state="pending")},
            "What an autoscaler of processors goes by. Well: each comes down again.",
            stacked=True,
        ),
        lines(
            "Running by lane",
            {"{{lane}}": told("hascheduler_lane_jobs", "lane", state="running")},
            "Who has the slots. Well: while all wait, in proportion to the lanes' weights.",
            stacked=True,
        ),
        lines(
            "Running by tenant",
            {"{{tenant}}": told("hascheduler_tenant_jobs", "tenant", state="running")},
            "Well: nobody above their quota.",
            stacked=True,
        ),
        lines(
            "Attempts by outcome",
            {"{{outcome}}": rate("hascheduler_attempts_total", "outcome")},
            "How attempts end. Well: succeeded, and as many failed as usual.",
            unit="ops",
        ),
    ],
)
