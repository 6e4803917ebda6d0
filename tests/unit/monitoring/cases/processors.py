"""Whether processors may run what they have."""

from tests.unit.monitoring.cases.case import Case, Fires, by_processor, of

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
)
