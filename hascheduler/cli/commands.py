"""The one table of commands: which module holds each command, and its line in ``--help``.

A command's module is imported only if that command runs, is completed or shows its own help. Lists of commands come
from this table alone, so that ``hascheduler --help`` answers at once. A line is the first sentence of the command's own
help (a test compares them).
"""

from hascheduler.cli.lazy_groups import CommandTable, LazyCommand, LazyGroup

_CLUSTER: CommandTable = {
    "failovers": LazyCommand(
        "cluster:failovers", "List changes of leader, with the reason and the time without a leader."
    ),
}

_PROCESSOR: CommandTable = {
    "list": LazyCommand("cluster:list_processors", "List the processors, and which are drained."),
    "drain": LazyCommand(
        "cluster:drain", "Stop giving new jobs to the processors of a name, until they are undrained."
    ),
    "undrain": LazyCommand("cluster:undrain", "Give jobs to drained processors again."),
}

_SCHEDULE: CommandTable = {
    "list": LazyCommand("schedules.show:list_schedules", "List schedules and their state."),
    "timeline": LazyCommand("schedules.preview:timeline", "List when schedules fire in the next hours, and how often."),
    "calendar": LazyCommand("schedules.preview:calendar", "List the next days and what fires on each."),
    "get": LazyCommand("schedules.show:get", "Show one schedule."),
    "verdicts": LazyCommand("schedules.show:verdicts", "Show what happened at each of a schedule's times."),
    "preview": LazyCommand("schedules.preview:preview_schedule", "Show the next fires and clock changes."),
    "put": LazyCommand("schedules.actions:put", "Create or replace a schedule."),
    "add": LazyCommand("schedules.actions:put", "The old name of `put`; it does not replace schedules.", hidden=True),
    "edit": LazyCommand("schedules.actions:edit", "Edit a schedule, by options or in $EDITOR."),
    "pause": LazyCommand("schedules.actions:pause", "Pause a schedule, or all that match."),
    "resume": LazyCommand("schedules.actions:resume", "Resume a paused schedule, or all that match, from now on."),
    "reset": LazyCommand("schedules.actions:reset", "Move a schedule back that a wrong clock made fire early."),
    "trigger": LazyCommand("schedules.actions:trigger", "Create a job of a schedule now, or of all that match."),
    "backfill": LazyCommand("schedules.actions:backfill", "Create jobs for past times of a schedule."),
    "delete": LazyCommand("schedules.actions:delete", "Delete a schedule."),
}

_JOB: CommandTable = {
    "submit": LazyCommand("jobs.submit:submit", "Submit a job."),
    "batch": LazyCommand("jobs.submit:batch", "Submit the jobs in a file."),
    "list": LazyCommand("jobs.show:list_jobs", "List jobs and their state."),
    "failed": LazyCommand("jobs.show:failed", "List failed jobs and their errors."),
    "counts": LazyCommand("jobs.show:counts", "Count jobs by state."),
    "errors": LazyCommand("jobs.show:errors", "Group the newest failed jobs by error."),
    "get": LazyCommand("jobs.show:get", "Show one job in full."),
    "wait": LazyCommand("jobs.submit:wait", "Wait until jobs have ended."),
    "cancel": LazyCommand("jobs.changes:cancel", "Cancel waiting jobs, and ask running jobs to stop."),
    "reprioritize": LazyCommand("jobs.changes:reprioritize", "Change the priority of waiting jobs."),
    "retry": LazyCommand("jobs.changes:retry", "Run failed or cancelled jobs again."),
    "delete": LazyCommand("jobs.changes:delete", "Delete ended jobs that match."),
}

_SHARDS: CommandTable = {
    "plan": LazyCommand("setup.shards:plan", "Show how many partitions each shard has and what would move."),
    "apply": LazyCommand(
        "setup.shards:apply",
        "Move partitions to other shards, and wait until they have moved.",
    ),
}


_CONTEXT: CommandTable = {
    "list": LazyCommand("setup.context:list_contexts", "List the contexts, and which one is in use."),
    "use": LazyCommand("setup.context:use", "Use a context from now on."),
    "set": LazyCommand("setup.context:set_context", "Create a context, or change what is given."),
    "show": LazyCommand("setup.context:show", "Show a context, or the one in use."),
    "delete": LazyCommand("setup.context:delete", "Delete a context."),
}


def _named(kind: str, condition: str = "") -> CommandTable:
    what = {
        "list": f"List the {kind}s.",
        "get": f"Show one {kind}.",
        "put": f"Create or replace a {kind}.",
        "edit": f"Edit a {kind}, by options or in $EDITOR.",
        "delete": f"Delete a {kind}{condition}.",
    }
    return {verb: LazyCommand(f"resources.named:{kind.upper()}.{verb}", summary) for verb, summary in what.items()}


_TENANT: CommandTable = {"delete": LazyCommand("resources.tenants:delete", "Delete a tenant.")}

_TOKEN: CommandTable = {
    "list": LazyCommand("resources.token:list_tokens", "List tokens and sessions, without their secrets."),
    "create": LazyCommand("resources.token:create", "Create a token."),
    "delete": LazyCommand("resources.token:delete", "Revoke a token."),
    "revoke": LazyCommand("resources.token:delete", "The old name of `hascheduler token delete`.", hidden=True),
    "whoami": LazyCommand("resources.token:whoami", "Show your token's name, role and permissions."),
}

_BOOTSTRAP: CommandTable = {
    "mongodb": LazyCommand(
        "setup.bootstrap:mongodb",
        "Initiate MongoDB's replica set, add missing members, and create or update its users.",
    ),
}

COMMANDS: CommandTable = {
    "serve": LazyCommand(
        "run.whole_system:serve", "Run one replica: the scheduler's loops and the HTTP API.", extra="server"
    ),
    "processor": LazyCommand(
        "run.whole_system:processor",
        "Run one processor with the handlers of the given modules.",
        commands=_PROCESSOR,
        extra="processor",
    ),
    "dev": LazyCommand(
        "run.dev:dev",
        "Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C.",
        extra="embedded",
    ),
    "demo": LazyCommand(
        "run.whole_system:demo",
        "Run a whole system, kill its leader repeatedly and a processor once, and report what happened.",
        extra="embedded",
    ),
    "cluster": LazyCommand("cluster:cluster", "Show the leader, replicas, processors and problems.", commands=_CLUSTER),
    "health": LazyCommand(
        "cluster:health", "Check that a replica or processor is ready, or say why not with exit status 1."
    ),
    "pause": LazyCommand("cluster:pause", "Pause everything: no schedule fires and no job starts."),
    "resume": LazyCommand("cluster:resume", "Resume what `hascheduler pause` has paused."),
    "schedule": LazyGroup("Show, preview, create and change schedules.", _SCHEDULE),
    "verdicts": LazyCommand(
        "schedules.show:all_verdicts", "Show the times of all schedules that did not fire, and why."
    ),
    "job": LazyGroup("Submit, show, wait for, cancel, retry and delete jobs.", _JOB),
    "why": LazyCommand("jobs.show:why", "Explain why a job is waiting."),
    "events": LazyCommand("jobs.events:events", "Follow the events of jobs and schedules, until Ctrl-C."),
    "definition": LazyGroup("Show, create and change job definitions.", _named("definition")),
    "lane": LazyGroup("Show, create and change lanes.", _named("lane")),
    "calendar": LazyGroup(
        "Show, create and change calendars of days for schedules.", _named("calendar", " that no schedule uses")
    ),
    "tenant": LazyGroup("Show, create and change tenants.", {**_named("tenant"), **_TENANT}),
    "token": LazyGroup("Create, show and revoke tokens.", _TOKEN),
    "doctor": LazyCommand(
        "setup.doctor:doctor",
        "Examine MongoDB and RabbitMQ: what hascheduler needs, what is missing, what to do.",
        extra="server",
    ),
    "context": LazyGroup("Show and change contexts: named sets of URLs and credentials.", _CONTEXT),
    "check": LazyCommand(
        "setup.check:check",
        "Check the whole database for broken invariants, such as stuck jobs or undecided times.",
        extra="server",
    ),
    "audit": LazyCommand("setup.check:audit", "The old name of `hascheduler check`.", hidden=True, extra="server"),
    "audit-log": LazyCommand("cluster:audit_log", "Show the audit log: who changed what, newest first."),
    "apply": LazyCommand(
        "resources.apply:apply", "Create or update schedules, definitions, lanes, calendars and tenants from files."
    ),
    "simulate": LazyCommand(
        "simulate.command:simulate",
        "Run a scenario on the real dispatch core in virtual time, and show the result.",
    ),
    "record": LazyCommand("simulate.command:record", "Record the leader's inputs and decisions."),
    "migrate": LazyCommand(
        "setup.migrate:migrate",
        "Create collections and indexes, and raise the schema version to this release's.",
        extra="server",
    ),
    "shards": LazyGroup("Show shards, and move tenants' partitions between them.", _SHARDS, extra="server"),
    "bootstrap": LazyGroup("Prepare MongoDB for a deployment.", _BOOTSTRAP, extra="server"),
    "version": LazyCommand("app:version", "Show the version and whether the core runs compiled."),
}
