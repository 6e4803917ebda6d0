"""``hascheduler definition``, ``lane``, ``calendar`` and ``tenant``: the order of columns and the examples of each."""

from hascheduler.cli.resources.named import NamedCommands

DEFINITION = NamedCommands(
    "definition",
    "max_concurrency tier conflict_group rate_limit default_cost resources retry timeout owner key_limits unique",
    none="There are no definitions; every job has the default limits.",
    deleted=". Its jobs go on, with the default limits.",
    examples={
        "put": (
            "repack --max-concurrency 3 --conflict-group git --tier 10 --rate-limit 100/1s --resources cpu=2",
            "repack --timeout 5m --total-timeout 1h --retry-attempts 5 --retry-backoff 2s --retry-max 1m",
        ),
        "edit": ("repack --max-concurrency none", "repack    (in $EDITOR)"),
    },
)
LANE = NamedCommands(
    "lane",
    "weight promote_after policy owner",
    none="There are no lanes; every lane has the defaults.",
    deleted=". Its jobs go on, in a lane with the defaults.",
    examples={
        "put": ("bulk --weight 2 --promote-after 30s --policy aged_priority,arrival",),
        "edit": ("bulk --weight 3 --policy none", "bulk    (in $EDITOR)"),
    },
)
CALENDAR = NamedCommands(
    "calendar",
    "weekdays include exclude owner",
    none="There are no calendars.",
    deleted=" that no schedule uses.",
    examples={
        "put": (
            "business-days --weekdays mon-fri",
            "holidays-de --include 01-01,05-01,10-03,12-25,12-26,2030-04-19",
        ),
        "edit": ("business-days --exclude 12-24,12-31", "business-days    (in $EDITOR)"),
    },
)
TENANT = NamedCommands(
    "tenant",
    "max_running max_pending submit_rate max_schedules fire_rate owner",
    none="There are no tenants; no tenant has a quota.",
    deleted=". Its jobs go on, without a quota.",
    examples={
        "put": ("acme --max-running 10 --max-pending 10000 --submit-rate 100/1s",),
        "edit": ("acme --max-running none", "acme    (in $EDITOR)"),
    },
)
