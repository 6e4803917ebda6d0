"""The processes themselves."""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import lines, table
from k8s.monitoring.generate.queries import WHO, by_process, chosen, per_process

_OURS = "~hascheduler-(scheduler|processor)"

PROCESSES = Row(
    "Processes",
    [
        lines(
            "CPU",
            {WHO: by_process(f"rate({chosen('process_cpu_seconds_total', job=_OURS)}[$__rate_interval])")},
            "Cores. Each process uses one at most; well: the leader clearly below 1.",
        ),
        lines(
            "Memory",
            {WHO: per_process("process_resident_memory_bytes", job=_OURS)},
            "Resident. Well: level; it grows with the jobs that wait, and comes down slowly.",
            unit="bytes",
        ),
        lines(
            "Open files",
            {WHO: per_process("process_open_fds", job=_OURS)},
            "Connections and files. Well: level, far below the limit.",
        ),
        lines(
            "Gauges unreadable",
            {WHO: per_process("hascheduler_scrape_failures_total")},
            "Scrapes that a process answered without its gauges; its log says why (`gauges_unreadable`). Well: 0. "
            "Above that, what it does not tell may be mistaken for trouble.",
        ),
        table(
            "Versions",
            by_process(chosen("hascheduler_build_info"), "version"),
            "Well: one version, but for the time of an update.",
            ["who", "version"],
        ),
        table(
            "Time-zone data",
            by_process(chosen("hascheduler_zone_data_info"), "version"),
            "Well: one release, but for the time of an update.",
            ["who", "version"],
        ),
    ],
    abreast=3,
)
