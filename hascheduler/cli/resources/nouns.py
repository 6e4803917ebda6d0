"""``hascheduler definition``, ``lane``, ``calendar`` and ``tenant``: the order of columns and the examples of each."""

from hascheduler.cli.resources.named import NamedCommands

DEFINITION = NamedCommands(
    "definition",
    columns="max_concurrency tier conflict_group rate_limit default_cost resources retry timeout owner "
    "key_limits unique",
    none="There are no definitions; every job has the default limits.",
    delete_help="Delete a definition. Its jobs go on, with the default limits.",
    put_examples=(
        "repack --max-concurrency 3 --conflict-group git --tier 10 --rate-limit 100/1s --resources cpu=2",
        "repack --timeout 5m --total-timeout 1h --retry-attempts 5 --retry-backoff 2s --retry-max 1m",
    ),
    edit_example="repack --max-concurrency none",
)
LANE = NamedCommands(
    "lane",
    columns="weight promote_after policy owner",
    none="There are no lanes; every lane has the defaults.",
    delete_help="Delete a lane. Its jobs go on, in a lane with the defaults.",
    put_examples=("bulk --weight 2 --promote-after 30s --policy aged_priority,arrival",),
    edit_example="bulk --weight 3 --policy none",
)
CALENDAR = NamedCommands(
    "calendar",
    columns="weekdays include exclude owner",
    none="There are no calendars.",
    delete_help="Delete a calendar that no schedule uses.",
    put_examples=(
        "business-days --weekdays mon-fri",
        "holidays-de --include 01-01,05-01,10-03,12-25,12-26,2030-04-19",
    ),
    edit_example="business-days --exclude 12-24,12-31",
)
TENANT = NamedCommands(
    "tenant",
    columns="max_running max_pending submit_rate max_schedules fire_rate owner",
    none="There are no tenants; no tenant has a quota.",
    delete_help="Delete a tenant. Its jobs go on, without a quota.",
    put_examples=("acme --max-running 10 --max-pending 10000 --submit-rate 100/1s",),
    edit_example="acme --max-running none",
)
