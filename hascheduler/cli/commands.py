"""The one table of commands: which module holds each command, and its line in ``--help``.

A command's module is imported only if that command runs, is completed or shows its own help. Lists of commands come
from this table alone, so that ``hascheduler --help`` answers at once. A line is the first sentence of the command's own
help (a test compares them).
"""

from hascheduler.cli.lazy_groups import CommandTable, LazyCommand, LazyGroup

_CLUSTER: CommandTable = {
    "failovers": LazyCommand(
        "cluster:failovers", "List the changes of leadership: why each came, and how long nobody led."
    ),
}

_PROCESSOR: CommandTable = {
    "list": LazyCommand("cluster:list_processors", "List the processors, and which are drained."),
    "drain": LazyCommand("cluster:drain", "Give the processors of a name no new jobs, until they are undrained."),
    "undrain": LazyCommand("cluster:undrain", "Give the processors of a name jobs again."),
}

_SCHEDULE: CommandTable = {
    "list": LazyCommand("schedules.show:list_schedules", "List schedules, and how they stand."),
    "timeline": LazyCommand(
        "schedules.preview:timeline", "List when schedules fire next, and how often in the next hours."
    ),
    "calendar": LazyCommand("schedules.preview:calendar", "List the next days, and what fires on each."),
    "get": LazyCommand("schedules.show:get", "Show one schedule."),
    "verdicts": LazyCommand("schedules.show:verdicts", "Show what became of a schedule's times."),
    "preview": LazyCommand("schedules.preview:preview_schedule", "Show the next fires and clock changes."),
    "put": LazyCommand("schedules.actions:put", "Make or replace a schedule."),
    "add": LazyCommand("schedules.actions:put", "The old name of `put`, which replaces none.", hidden=True),
    "edit": LazyCommand("schedules.actions:edit", "Edit a schedule, by options or in $EDITOR."),
    "pause": LazyCommand("schedules.actions:pause", "Pause a schedule, or all that match."),
    "resume": LazyCommand("schedules.actions:resume", "Resume a paused schedule, or all that match, from now on."),
    "reset": LazyCommand("schedules.actions:reset", "Let a schedule go on that a wrong clock made fire early."),
    "trigger": LazyCommand("schedules.actions:trigger", "Make a job of a schedule now, or of all that match."),
    "backfill": LazyCommand("schedules.actions:backfill", "Make jobs for times that have passed."),
    "delete": LazyCommand("schedules.actions:delete", "Delete a schedule."),
}

_JOB: CommandTable = {
    "submit": LazyCommand("jobs.submit:submit", "Submit a job, to run as soon as it may."),
    "batch": LazyCommand("jobs.submit:batch", "Submit the jobs of a file."),
    "list": LazyCommand("jobs.show:list_jobs", "List jobs, and how they stand."),
    "failed": LazyCommand("jobs.show:failed", "List the jobs that have failed for good, and why."),
    "counts": LazyCommand("jobs.show:counts", "Count jobs by state."),
    "errors": LazyCommand("jobs.show:errors", "Group the newest failed jobs by what went wrong."),
    "get": LazyCommand("jobs.show:get", "Show one job with everything about it."),
    "wait": LazyCommand("jobs.submit:wait", "Wait until a job has ended."),
    "cancel": LazyCommand("jobs.changes:cancel", "Cancel jobs that wait, and ask running ones to stop."),
    "reprioritize": LazyCommand("jobs.changes:reprioritize", "Give jobs that wait another priority."),
    "retry": LazyCommand("jobs.changes:retry", "Have failed jobs run again, and cancelled ones."),
}

_SHARDS: CommandTable = {
    "plan": LazyCommand("setup.shards:plan", "Show how many partitions each shard has, and what would move."),
    "apply": LazyCommand(
        "setup.shards:apply",
        "Move partitions to other shards while everything runs, and follow them until they are there.",
    ),
}


def _named(kind: str, condition: str = "") -> CommandTable:
    what = {
        "list": f"List the {kind}s.",
        "get": f"Show one {kind}.",
        "put": f"Make or replace a {kind}.",
        "edit": f"Edit a {kind}, by options or in $EDITOR.",
        "delete": f"Delete a {kind}{condition}.",
    }
    return {verb: LazyCommand(f"resources.named:{kind.upper()}.{verb}", summary) for verb, summary in what.items()}


_TOKEN: CommandTable = {
    "list": LazyCommand("resources.token:list_tokens", "List tokens and sessions, without their secrets."),
    "create": LazyCommand("resources.token:create", "Make a token."),
    "delete": LazyCommand("resources.token:delete", "Revoke a token: it opens nothing any more."),
    "revoke": LazyCommand("resources.token:delete", "The old name of `hascheduler token delete`.", hidden=True),
    "whoami": LazyCommand("resources.token:whoami", "Show who you are to a replica, and what you may do."),
}

_BOOTSTRAP: CommandTable = {
    "mongodb": LazyCommand(
        "setup.bootstrap:mongodb",
        "Initiate the replica set if there is none, add the members that it lacks, and make or update its users.",
    ),
}

COMMANDS: CommandTable = {
    "serve": LazyCommand("run.whole_system:serve", "Run one replica: the scheduler's loops and the HTTP API."),
    "processor": LazyCommand(
        "run.whole_system:processor", "Run one processor with the handlers of the given modules.", commands=_PROCESSOR
    ),
    "dev": LazyCommand(
        "run.whole_system:dev", "Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C."
    ),
    "demo": LazyCommand(
        "run.whole_system:demo", "Run the system, kill the leader again and again and a processor once, and report."
    ),
    "cluster": LazyCommand("cluster:cluster", "Show who leads, who is there, and what is wrong.", commands=_CLUSTER),
    "pause": LazyCommand("cluster:pause", "Pause everything: no schedule fires, no job begins."),
    "resume": LazyCommand("cluster:resume", "Resume everything that `hascheduler pause` has paused."),
    "schedule": LazyGroup("See, preview, make and change schedules.", _SCHEDULE),
    "verdicts": LazyCommand("schedules.show:all_verdicts", "Show which times of all schedules did not fire, and why."),
    "job": LazyGroup("Submit, see, wait for, cancel and retry jobs; `hascheduler why` says why one waits.", _JOB),
    "why": LazyCommand("jobs.show:why", "Say why a job waits."),
    "events": LazyCommand(
        "jobs.events:events", "Show what happens to jobs and schedules, as it happens, until Ctrl-C."
    ),
    "definition": LazyGroup("See, make and change types of job.", _named("definition")),
    "lane": LazyGroup("See, make and change lanes.", _named("lane")),
    "calendar": LazyGroup(
        "See, make and change calendars, whose days schedules share.", _named("calendar", " that no schedule uses")
    ),
    "tenant": LazyGroup("See, make and change tenants.", _named("tenant")),
    "token": LazyGroup("Make, see and revoke tokens.", _TOKEN),
    "check": LazyCommand(
        "setup.check:check",
        "Look through the whole database for what should never be: times without a verdict, jobs that are stuck, ...",
    ),
    "audit": LazyCommand("setup.check:audit", "The old name of `hascheduler check`.", hidden=True),
    "audit-log": LazyCommand("cluster:audit_log", "Show who changed what, the newest first."),
    "apply": LazyCommand(
        "resources.apply:apply", "Make schedules, definitions, lanes, calendars and tenants as files say."
    ),
    "simulate": LazyCommand(
        "simulate.command:simulate",
        "Run a scenario on the real dispatch core in virtual time, and show what comes of it.",
    ),
    "record": LazyCommand("simulate.command:record", "Record the leader's inputs and decisions."),
    "migrate": LazyCommand(
        "setup.migrate:migrate",
        "Make collections and indexes, and raise the database's schema version to that of this release.",
    ),
    "shards": LazyGroup("See which shard has what, and move partitions of tenants between shards.", _SHARDS),
    "bootstrap": LazyGroup("Make the servers ready for a deployment.", _BOOTSTRAP),
    "version": LazyCommand("app:version", "Show the version, and whether the core runs compiled."),
}
