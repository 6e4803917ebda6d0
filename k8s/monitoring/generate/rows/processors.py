"""Are there processors to run it?"""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines
from k8s.monitoring.generate.queries import WHO, by_process, chosen, per_process, quantile, rate, told

PROCESSORS = Row(
    "Processors",
    [
        lines(
            "Live and lost",
            {
                "{{state}}": told("hascheduler_processors", "state"),
                "{{reason}}": told("hascheduler_processors_unable", "reason"),
            },
            "As the leader sees their heartbeats. Well: all live; draining for the time of an update; lost is a death. "
            "Not consuming: its queue can't be reached; resting: it did not take up its last jobs.",
        ),
        lines(
            "Slots",
            {"{{state}}": told("hascheduler_processor_slots", "state")},
            "Of the living. Well: some are free. None free for long while jobs wait: more processors are wanted.",
        ),
        lines(
            "Attempts lost",
            {"lost": rate("hascheduler_attempts_lost_total")},
            "Taken from processors that went silent. Well: 0; a killed processor is one peak.",
            unit="ops",
        ),
        lines(
            "Attempts by outcome, as processors tell",
            {"{{outcome}}": rate("hascheduler_processor_attempts_total", "outcome")},
            "Well: succeeded. `given_back` during drains; lost races are duplicates that died as they should.",
            unit="ops",
        ),
        lines(
            "Handler time, p95, by definition",
            {"{{definition}}": quantile(0.95, "hascheduler_handler_seconds", "definition")},
            "How long the handlers themselves take. Well: as always for that definition.",
            unit="s",
        ),
        lines(
            "Slots in use, by processor",
            {
                WHO: by_process(
                    f"{chosen('hascheduler_processor_running')} / {chosen('hascheduler_processor_slots_max')}"
                )
            },
            "The share of its slots that runs something. Well: even between processors that support the same.",
            unit="percentunit",
        ),
        lines(
            "Heartbeat age",
            {WHO: per_process("hascheduler_processor_heartbeat_age_seconds")},
            "Since a processor last wrote its heartbeat. Well: about a second. At the heartbeat timeout (5 s, red) it "
            "has stopped its jobs and others have them.",
            unit="s",
            limit=5,
        ),
        lines(
            "Fence open",
            {WHO: per_process("hascheduler_processor_fence_open")},
            "1 while a processor may run jobs. 0: it can't write its heartbeat, and has stopped them. Well: 1.",
            unit="bool_yes_no",
        ),
        lines(
            "Messages parked",
            {"parked": rate("hascheduler_processor_parked_total")},
            "Messages that no processor could read, put aside. Well: 0.",
            unit="ops",
        ),
    ],
)
