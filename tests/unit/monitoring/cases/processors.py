"""Whether processors may run what they have."""

from tests.unit.monitoring.cases.case import NAMESPACE, Case, Fires, by_processor, of, told

UNABLE = "hascheduler_processors_unable"

CASES = (
    Case(
        "ProcessorFenceClosed",
        "one of two",
        "5m",
        {
            by_processor("hascheduler_processor_fence_open", 0): "0x60",
            by_processor("hascheduler_processor_fence_open", 1): "1x60",
        },
        (Fires("Processor processor-0 can't write its heartbeat and has stopped its jobs", of(0, "processor")),),
    ),
    Case(
        "ProcessorFenceClosed",
        "while it starts",
        "30s",
        {by_processor("hascheduler_processor_fence_open", 0): "0x2 1x60"},
    ),
    Case(
        "ProcessorUnable",
        "one rests, as every replica sees",
        "10m",
        {
            **{told("hascheduler_ready", replica): "1x60" for replica in (0, 1)},
            **{told(UNABLE, replica, reason="resting"): "1x60" for replica in (0, 1)},
            **{told(UNABLE, replica, reason="not_consuming"): "0x60" for replica in (0, 1)},
        },
        (
            Fires(
                "1 processors live and get no jobs (resting) in hascheduler",
                {"namespace": NAMESPACE, "reason": "resting"},
            ),
        ),
    ),
    Case(
        "ProcessorUnable",
        "while the broker starts again",
        "10m",
        {told("hascheduler_ready"): "1x60", told(UNABLE, reason="not_consuming"): "3x8 0x50"},
    ),
)
