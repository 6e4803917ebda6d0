"""The one table of commands: which function each command is, and its line in ``--help``.

A line is the first sentence of the command's own help (a test compares them).
"""

from collections.abc import Mapping

from hascheduler.cli.lazy_groups import CommandTable, LazyCommand


def _table(rows: str, **inner: CommandTable) -> CommandTable:
    """Return the commands of ``name: help [module:function]`` rows; one whose name is in parentheses is hidden.

    ``inner`` are the commands below a command. One without a function only holds them.
    """
    found: dict[str, LazyCommand] = {}
    for row in rows.strip().splitlines():
        shown, _, rest = row.partition(": ")
        summary, _, where = rest.removesuffix("]").partition(" [")
        name = shown.strip("()")
        found[name] = LazyCommand(where, summary, hidden=name != shown, commands=inner.get(name, {}))
    return found


def _named(kind: str, condition: str = "") -> CommandTable:
    function = f"resources.named:{kind.upper()}"
    return _table(f"""
list: List the {kind}s. [{function}.list]
get: Show one {kind}. [{function}.get]
put: Create or replace a {kind}. [{function}.put]
edit: Edit a {kind}, by options or in $EDITOR. [{function}.edit]
delete: Delete a {kind}{condition}. [{function}.delete]
""")


_CLUSTER = _table(
    "failovers: List changes of leader, with the reason and the time without a leader. [cluster:failovers]"
)
_PROCESSOR = _table("""
list: List the processors, and which are drained. [cluster:list_processors]
drain: Stop giving new jobs to the processors of a name, until they are undrained. [cluster:drain]
undrain: Give jobs to drained processors again. [cluster:undrain]
""")
_SCHEDULE = _table("""
list: List schedules and their state. [schedules.show:list_schedules]
timeline: List when schedules fire in the next hours, and how often. [schedules.preview:timeline]
calendar: List the next days and what fires on each. [schedules.preview:calendar]
get: Show one schedule. [schedules.show:get]
verdicts: Show what happened at each of a schedule's times. [schedules.show:verdicts]
preview: Show the next fires and clock changes. [schedules.preview:preview_schedule]
put: Create or replace a schedule. [schedules.actions:put]
(add): The old name of `put`; it does not replace schedules. [schedules.actions:put]
edit: Edit a schedule, by options or in $EDITOR. [schedules.actions:edit]
pause: Pause a schedule, or all that match. [schedules.actions:pause]
resume: Resume a paused schedule, or all that match, from now on. [schedules.actions:resume]
reset: Move a schedule back that a wrong clock made fire early. [schedules.actions:reset]
trigger: Create a job of a schedule now, or of all that match. [schedules.actions:trigger]
backfill: Create jobs for past times of a schedule. [schedules.actions:backfill]
delete: Delete a schedule. [schedules.actions:delete]
""")
_JOB = _table("""
submit: Submit a job. [jobs.submit:submit]
batch: Submit the jobs in a file. [jobs.submit:batch]
list: List jobs and their state. [jobs.show:list_jobs]
failed: List failed jobs and their errors. [jobs.show:failed]
counts: Count jobs by state. [jobs.show:counts]
errors: Group the newest failed jobs by error. [jobs.show:errors]
get: Show one job in full. [jobs.show:get]
wait: Wait until jobs have ended. [jobs.submit:wait]
cancel: Cancel waiting jobs, and ask running jobs to stop. [jobs.changes:cancel]
reprioritize: Change the priority of waiting jobs. [jobs.changes:reprioritize]
retry: Run failed or cancelled jobs again. [jobs.changes:retry]
delete: Delete ended jobs that match. [jobs.changes:delete]
""")
_SHARDS = _table("""
plan: Show how many partitions each shard has and what would move. [setup.shards:plan]
apply: Move partitions to other shards, and wait until they have moved. [setup.shards:apply]
""")
_CONTEXT = _table("""
list: List the contexts, and which one is in use. [setup.context:list_contexts]
use: Use a context from now on. [setup.context:use]
set: Create a context, or change what is given. [setup.context:set_context]
show: Show a context, or the one in use. [setup.context:show]
delete: Delete a context. [setup.context:delete]
""")
_TENANT = _table("delete: Delete a tenant. [resources.tenants:delete]")
_TOKEN = _table("""
list: List tokens and sessions, without their secrets. [resources.token:list_tokens]
create: Create a token. [resources.token:create]
delete: Revoke a token. [resources.token:delete]
(revoke): The old name of `hascheduler token delete`. [resources.token:delete]
whoami: Show your token's name, role and permissions. [resources.token:whoami]
""")
_BOOTSTRAP = _table("""
mongodb: Initiate MongoDB's replica set, add missing members, and create or update its users. [setup.bootstrap:mongodb]
""")
COMMANDS = _table(
    """
serve: Run one replica: the scheduler's loops and the HTTP API. [run.whole_system:serve]
processor: Run one processor with the handlers of the given modules. [run.whole_system:processor]
dev: Run MongoDB, RabbitMQ, replicas and processors on this machine, until Ctrl-C. [run.dev:dev]
demo: Run a whole system, kill its leader repeatedly and a processor once, and report what happened.\
 [run.whole_system:demo]
cluster: Show the leader, replicas, processors and problems. [cluster:cluster]
health: Check that a replica or processor is ready, or say why not with exit status 1. [cluster:health]
pause: Pause everything: no schedule fires and no job starts. [cluster:pause]
resume: Resume what `hascheduler pause` has paused. [cluster:resume]
schedule: Show, preview, create and change schedules.
verdicts: Show the times of all schedules that did not fire, and why. [schedules.show:all_verdicts]
job: Submit, show, wait for, cancel, retry and delete jobs.
why: Explain why a job is waiting. [jobs.show:why]
events: Follow the events of jobs and schedules, until Ctrl-C. [jobs.events:events]
definition: Show, create and change job definitions.
lane: Show, create and change lanes.
calendar: Show, create and change calendars of days for schedules.
tenant: Show, create and change tenants.
token: Create, show and revoke tokens.
doctor: Examine MongoDB and RabbitMQ: what hascheduler needs, what is missing, what to do. [setup.doctor:doctor]
context: Show and change contexts: named sets of URLs and credentials.
check: Check the whole database for broken invariants, such as stuck jobs or undecided times. [setup.check:check]
(audit): The old name of `hascheduler check`. [setup.check:audit]
audit-log: Show the audit log: who changed what, newest first. [cluster:audit_log]
apply: Create or update schedules, definitions, lanes, calendars and tenants from files. [resources.apply:apply]
simulate: Run a scenario on the real dispatch core in virtual time, and show the result. [simulate.command:simulate]
record: Record the leader's inputs and decisions. [simulate.command:record]
migrate: Create collections and indexes, and raise the schema version to this release's. [setup.migrate:migrate]
shards: Show shards, and move tenants' partitions between them.
bootstrap: Prepare MongoDB for a deployment.
version: Show the version and whether the core runs compiled. [app:version]
""",
    processor=_PROCESSOR,
    cluster=_CLUSTER,
    schedule=_SCHEDULE,
    job=_JOB,
    definition=_named("definition"),
    lane=_named("lane"),
    calendar=_named("calendar", " that no schedule uses"),
    tenant={**_named("tenant"), **_TENANT},
    token=_TOKEN,
    context=_CONTEXT,
    shards=_SHARDS,
    bootstrap=_BOOTSTRAP,
)
EXTRAS: Mapping[str, str] = {
    "processor": "processor",
    **dict.fromkeys(("dev", "demo"), "embedded"),
    **dict.fromkeys(("serve", "doctor", "check", "audit", "migrate", "shards", "bootstrap"), "server"),
}
"""The extra of the package that a command needs."""
