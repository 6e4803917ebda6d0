"""Whether jobs that wait get their turn."""

from tests.unit.monitoring.cases.case import NAMESPACE, Case, Fires, told

READY = "hascheduler_ready"
OLDEST = "hascheduler_wait_oldest_seconds"
BOUND = "hascheduler_wait_bound_seconds"
PROCESSORS = "hascheduler_processors"
SLOTS = "hascheduler_processor_slots"
LOST = "hascheduler_attempts_lost_total"
ATTEMPTS = "hascheduler_attempts_total"

PAUSED = "hascheduler_paused"

CASES = (
    Case(
        "Paused",
        "for more than an hour",
        "1h10m",
        {told(READY): "1x300", told(PAUSED, what="schedules"): "1x300", told(PAUSED, what="dispatches"): "0x300"},
        (Fires("Everything has been paused for over an hour in hascheduler"),),
    ),
    Case(
        "Paused",
        "a replica that is not ready remembers it",
        "1h10m",
        {
            told(READY, 0): "0x300",
            told(PAUSED, 0, what="schedules"): "1x300",
            told(READY, 1): "1x300",
            told(PAUSED, 1, what="schedules"): "0x300",
        },
    ),
    Case("Paused", "for less", "50m", {told(READY): "1x300", told(PAUSED, what="schedules"): "1x300"}),
    Case(
        "WaitsBeyondBound",
        "everything is paused",
        "40m",
        {
            told(READY): "1x200",
            told(OLDEST, lane="bulk"): "0+15x200",
            told(BOUND): "60x200",
            told(SLOTS, state="free"): "3x200",
            told(PAUSED, what="dispatches"): "1x200",
        },
    ),
    Case(
        "NoProcessors",
        "none",
        "8m",
        {
            told(READY): "1x60",
            told(OLDEST, lane="bulk"): "0+15x60",
            told(OLDEST, lane="default"): "0x60",
            told(PROCESSORS, state="live"): "0x60",
        },
        (Fires("Jobs wait (the oldest for 8m 0s) and no processor lives in hascheduler"),),
    ),
    Case(
        "NoProcessors",
        "their number is not told",
        "8m",
        {told(READY): "1x60", told(OLDEST, lane="default"): "0+15x60"},
        (Fires("Jobs wait (the oldest for 8m 0s) and no processor lives in hascheduler"),),
    ),
    Case(
        "NoProcessors",
        "a stale replica remembers some",
        "8m",
        {
            told(READY, 0): "1x60",
            told(OLDEST, 0, lane="default"): "0+15x60",
            told(PROCESSORS, 0, state="live"): "0x60",
            told(READY, 1): "0x60",
            told(PROCESSORS, 1, state="live"): "5x60",
        },
        (Fires("Jobs wait (the oldest for 8m 0s) and no processor lives in hascheduler"),),
    ),
    Case(
        "NoProcessors",
        "while they restart",
        "5m45s",
        {told(READY): "1x60", told(OLDEST, lane="default"): "0+15x60", told(PROCESSORS, state="live"): "2x20 0x4 2x40"},
    ),
    Case(
        "NoProcessors",
        "all are busy",
        "8m",
        {told(READY): "1x60", told(OLDEST, lane="default"): "0+15x60", told(PROCESSORS, state="live"): "2x60"},
    ),
    Case(
        "NoProcessors",
        "nothing waits",
        "8m",
        {told(READY): "1x60", told(OLDEST, lane="default"): "0x60", told(PROCESSORS, state="live"): "0x60"},
    ),
    Case(
        "WaitsBeyondBound",
        "one lane of two",
        "15m",
        {
            told(READY): "1x80",
            told(OLDEST, lane="bulk"): "3000x80",
            told(OLDEST, lane="default"): "100x80",
            told(BOUND): "1920x80",
            told(SLOTS, state="free"): "3x80",
        },
        (
            Fires(
                "A job of lane bulk has waited for 50m 0s although slots are free",
                {"namespace": NAMESPACE, "lane": "bulk"},
            ),
        ),
    ),
    Case(
        "WaitsBeyondBound",
        "no slot is free",
        "15m",
        {
            told(READY): "1x80",
            told(OLDEST, lane="bulk"): "3000x80",
            told(BOUND): "1920x80",
            told(SLOTS, state="free"): "0x80",
            told(SLOTS, state="occupied"): "8x80",
        },
    ),
    Case(
        "WaitsBeyondBound",
        "slots are free for a moment",
        "11m30s",
        {
            told(READY): "1x80",
            told(OLDEST, lane="bulk"): "3000x80",
            told(BOUND): "1920x80",
            told(SLOTS, state="free"): "0x40 3x8 0x40",
        },
    ),
    Case(
        "WaitsBeyondBound",
        "the policy has no bound",
        "15m",
        {told(READY): "1x80", told(OLDEST, lane="bulk"): "3000x80", told(SLOTS, state="free"): "3x80"},
    ),
    Case(
        "Unschedulable",
        "two replicas tell the same, a stale one more",
        "20m",
        {
            told(READY, 0): "1x99",
            told("hascheduler_jobs_unschedulable", 0): "2x99",
            told(READY, 1): "1x99",
            told("hascheduler_jobs_unschedulable", 1): "2x99",
            told(READY, 2): "0x99",
            told("hascheduler_jobs_unschedulable", 2): "7x99",
        },
        (Fires("2 waiting jobs can run on no processor that lives in hascheduler"),),
    ),
    Case(
        "Unschedulable",
        "during a deployment",
        "15m",
        {told(READY): "1x99", told("hascheduler_jobs_unschedulable"): "0x20 2x50 0x20"},
    ),
    Case(
        "AttemptsLost",
        "one in five, for long",
        "40m",
        {told(LOST): "0+1x200", told(ATTEMPTS, definition="a", outcome="succeeded"): "0+5x200"},
        (Fires("60 attempts were lost within 15 minutes in hascheduler"),),
    ),
    Case(
        "AttemptsLost",
        "one in a hundred",
        "40m",
        {told(LOST): "0+1x200", told(ATTEMPTS, definition="a", outcome="succeeded"): "0+100x200"},
    ),
    Case(
        "AttemptsLost",
        "one processor was killed",
        "25m",
        {told(LOST): "0x40 8x200", told(ATTEMPTS, definition="a", outcome="succeeded"): "0+0.1x240"},
    ),
)
