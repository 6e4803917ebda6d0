"""The one table of commands: which module carries which command, and its line in ``--help``.

A command's module is imported only when that command runs, is completed or shows its own help. Lists of commands come
from this table alone, so that ``hascheduler --help`` answers at once. A line is the first sentence of the command's own
help (a test compares them).
"""

from hascheduler.cli.lazy_groups import CommandTable, LazyCommand, LazyGroup

CLUSTER: CommandTable = {
    "failovers": LazyCommand(
        "hascheduler.cli.cluster:failovers", "List the changes of leadership: why each came, and how long nobody led."
    ),
}

_PROCESSOR: CommandTable = {
    "list": LazyCommand("hascheduler.cli.processors:list_processors", "List the processors, and which are drained."),
    "drain": LazyCommand(
        "hascheduler.cli.processors:drain", "Give the processors of a name no new jobs, until they are undrained."
    ),
    "undrain": LazyCommand("hascheduler.cli.processors:undrain", "Give the processors of a name jobs again."),
}

_SCHEDULE: CommandTable = {
    "list": LazyCommand("hascheduler.cli.schedules.show:list_schedules", "List schedules, and how they stand."),
    "timeline": LazyCommand(
        "hascheduler.cli.schedules.upcoming:timeline",
        "List when schedules fire next, and how often in the next hours.",
    ),
    "calendar": LazyCommand(
        "hascheduler.cli.schedules.upcoming:calendar", "List the next days, and what fires on each."
    ),
    "get": LazyCommand("hascheduler.cli.schedules.show:get", "Show one schedule."),
    "verdicts": LazyCommand("hascheduler.cli.schedules.show:verdicts", "Show what became of a schedule's times."),
    "preview": LazyCommand(
        "hascheduler.cli.schedules.preview:preview_schedule", "Show the next fires and clock changes."
    ),
    "add": LazyCommand("hascheduler.cli.schedules.edit:add", "Make a schedule."),
    "edit": LazyCommand("hascheduler.cli.schedules.edit:edit", "Edit a schedule, by options or in $EDITOR."),
    "pause": LazyCommand("hascheduler.cli.schedules.actions:pause", "Pause a schedule, or all that match."),
    "resume": LazyCommand(
        "hascheduler.cli.schedules.actions:resume", "Resume a paused schedule, or all that match, from now on."
    ),
    "reset": LazyCommand(
        "hascheduler.cli.schedules.actions:reset",
        "Let a schedule go on that a wrong clock made fire early.",
    ),
    "trigger": LazyCommand(
        "hascheduler.cli.schedules.actions:trigger", "Make a job of a schedule now, or of all that match."
    ),
    "backfill": LazyCommand("hascheduler.cli.schedules.actions:backfill", "Make jobs for times that have passed."),
    "delete": LazyCommand("hascheduler.cli.schedules.actions:delete", "Delete a schedule."),
}

_JOB: CommandTable = {
    "submit": LazyCommand("hascheduler.cli.jobs.submit:submit", "Submit a job, to run as soon as it may."),
    "batch": LazyCommand("hascheduler.cli.jobs.batch:batch", "Submit the jobs of a file."),
    "list": LazyCommand("hascheduler.cli.jobs.show:list_jobs", "List jobs, and how they stand."),
    "failed": LazyCommand("hascheduler.cli.jobs.show:failed", "List the jobs that have failed for good, and why."),
    "counts": LazyCommand("hascheduler.cli.jobs.totals:counts", "Count jobs by state."),
    "errors": LazyCommand("hascheduler.cli.jobs.totals:errors", "Group the newest failed jobs by what went wrong."),
    "get": LazyCommand("hascheduler.cli.jobs.show:get", "Show one job with everything about it."),
    "wait": LazyCommand("hascheduler.cli.jobs.submit:wait", "Wait until a job has ended."),
    "cancel": LazyCommand(
        "hascheduler.cli.jobs.changes:cancel", "Cancel jobs that wait, and ask running ones to stop."
    ),
    "reprioritize": LazyCommand("hascheduler.cli.jobs.changes:reprioritize", "Give jobs that wait another priority."),
    "retry": LazyCommand("hascheduler.cli.jobs.changes:retry", "Have failed jobs run again, and cancelled ones."),
}

_SHARDS: CommandTable = {
    "plan": LazyCommand(
        "hascheduler.cli.setup.shards:plan", "Show how many slots each shard has, and what would move."
    ),
    "apply": LazyCommand(
        "hascheduler.cli.setup.shards:apply",
        "Move slots to other shards while everything runs, and follow them until they are there.",
    ),
}

_DEFINITION: CommandTable = {
    "list": LazyCommand("hascheduler.cli.resources.definition:list_definitions", "List the definitions."),
    "get": LazyCommand("hascheduler.cli.resources.definition:get", "Show one definition."),
    "put": LazyCommand("hascheduler.cli.resources.definition:put", "Make or replace a definition."),
    "edit": LazyCommand("hascheduler.cli.resources.definition:edit", "Edit a definition, by options or in $EDITOR."),
    "delete": LazyCommand("hascheduler.cli.resources.definition:delete", "Delete a definition."),
}

_LANE: CommandTable = {
    "list": LazyCommand("hascheduler.cli.resources.lane:list_lanes", "List the lanes."),
    "get": LazyCommand("hascheduler.cli.resources.lane:get", "Show one lane."),
    "put": LazyCommand("hascheduler.cli.resources.lane:put", "Make or replace a lane."),
    "edit": LazyCommand("hascheduler.cli.resources.lane:edit", "Edit a lane, by options or in $EDITOR."),
    "delete": LazyCommand("hascheduler.cli.resources.lane:delete", "Delete a lane."),
}

_CALENDAR: CommandTable = {
    "list": LazyCommand("hascheduler.cli.resources.calendar:list_calendars", "List the calendars."),
    "get": LazyCommand("hascheduler.cli.resources.calendar:get", "Show one calendar."),
    "put": LazyCommand("hascheduler.cli.resources.calendar:put", "Make or replace a calendar."),
    "edit": LazyCommand("hascheduler.cli.resources.calendar:edit", "Edit a calendar, by options or in $EDITOR."),
    "delete": LazyCommand("hascheduler.cli.resources.calendar:delete", "Delete a calendar that no schedule uses."),
}

_TENANT: CommandTable = {
    "list": LazyCommand("hascheduler.cli.resources.tenant:list_tenants", "List the tenants."),
    "get": LazyCommand("hascheduler.cli.resources.tenant:get", "Show one tenant."),
    "put": LazyCommand("hascheduler.cli.resources.tenant:put", "Make or replace a tenant."),
    "edit": LazyCommand("hascheduler.cli.resources.tenant:edit", "Edit a tenant, by options or in $EDITOR."),
    "delete": LazyCommand("hascheduler.cli.resources.tenant:delete", "Delete a tenant."),
}

_TOKEN: CommandTable = {
    "list": LazyCommand(
        "hascheduler.cli.resources.token:list_tokens",
        "List tokens and sessions, without their secrets.",
    ),
    "create": LazyCommand("hascheduler.cli.resources.token:create", "Make a token."),
    "revoke": LazyCommand("hascheduler.cli.resources.token:revoke", "Revoke a token: it opens nothing any more."),
    "whoami": LazyCommand(
        "hascheduler.cli.resources.token:whoami", "Show who you are to a replica, and what you may do."
    ),
}

_BOOTSTRAP: CommandTable = {
    "mongodb": LazyCommand(
        "hascheduler.cli.setup.bootstrap:mongodb",
        "Initiate the replica set if there is none, add the members that it lacks, and make or update its users.",
    ),
}

COMMANDS: CommandTable = {
    "serve": LazyCommand(
        "hascheduler.cli.run.processes:serve", "Run one replica: the scheduler's loops and the HTTP API."
    ),
    "processor": LazyCommand(
        "hascheduler.cli.run.processes:processor",
        "Run one processor with the handlers of the given modules.",
        commands=_PROCESSOR,
    ),
    "dev": LazyCommand(
        "hascheduler.cli.run.dev:dev", "Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C."
    ),
    "demo": LazyCommand(
        "hascheduler.cli.run.demo:demo",
        "Run the system, kill the leader again and again and a processor once, and report.",
    ),
    "cluster": LazyCommand("hascheduler.cli.cluster:cluster", "Show who leads, who is there, and what is wrong."),
    "pause": LazyCommand("hascheduler.cli.pause_all:pause", "Pause everything: no schedule fires, no job begins."),
    "resume": LazyCommand("hascheduler.cli.pause_all:resume", "Resume everything that `hascheduler pause` has paused."),
    "schedule": LazyGroup("See, preview, make and change schedules.", _SCHEDULE),
    "verdicts": LazyCommand(
        "hascheduler.cli.schedules.all_verdicts:verdicts",
        "Show which times of all schedules did not fire, and why.",
    ),
    "job": LazyGroup("Submit, see, wait for, cancel and retry jobs; `hascheduler why` says why one waits.", _JOB),
    "why": LazyCommand("hascheduler.cli.jobs.show:why", "Say why a job waits."),
    "events": LazyCommand(
        "hascheduler.cli.jobs.events:events",
        "Show what happens to jobs and schedules, as it happens, until Ctrl-C.",
    ),
    "definition": LazyGroup("See, make and change types of job.", _DEFINITION),
    "lane": LazyGroup("See, make and change lanes.", _LANE),
    "calendar": LazyGroup("See, make and change calendars, whose days schedules share.", _CALENDAR),
    "tenant": LazyGroup("See, make and change tenants.", _TENANT),
    "token": LazyGroup("Make, see and revoke tokens.", _TOKEN),
    "check": LazyCommand(
        "hascheduler.cli.setup.check:check",
        "Look through the whole database for what should never be: times without a verdict, jobs that are stuck, ...",
    ),
    "audit": LazyCommand("hascheduler.cli.setup.check:audit", "The old name of `hascheduler check`.", hidden=True),
    "audit-log": LazyCommand("hascheduler.cli.audit_log:audit_log", "Show who changed what, the newest first."),
    "apply": LazyCommand(
        "hascheduler.cli.resources.apply:apply",
        "Make schedules, definitions, lanes, calendars and tenants as files say.",
    ),
    "simulate": LazyCommand(
        "hascheduler.cli.simulate.command:simulate",
        "Run a scenario on the real dispatch core in virtual time, and show what comes of it.",
    ),
    "record": LazyCommand("hascheduler.cli.simulate.record:record", "Record the leader's inputs and decisions."),
    "migrate": LazyCommand(
        "hascheduler.cli.setup.migrate:migrate",
        "Make collections and indexes, and raise the database's schema version to that of this release.",
    ),
    "shards": LazyGroup("See which shard has what, and move slots of tenants between shards.", _SHARDS),
    "bootstrap": LazyGroup("Make the servers ready for a deployment.", _BOOTSTRAP),
    "version": LazyCommand("hascheduler.cli.app:version", "Show the version, and whether the core runs compiled."),
}
