"""The cluster as a whole: its state, its audit log, pauses and drains.

``hascheduler cluster`` shows its state, ``health`` that of one process, and ``audit-log`` who changed something or was
refused. ``pause`` and ``resume`` apply to all of it, ``processor list``, ``drain`` and ``undrain`` to processors.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hascheduler.cli.completion import complete_tenant
from hascheduler.cli.environment import access, own_url
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Because, argument, option
from hascheduler.cli.output.answers import Answer, Shown, asks, prints
from hascheduler.cli.output.console import or_dash, yes_or_no
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.output.tables import Cell, plain, table_of
from hascheduler.cli.replica import Scheduler, as_cli_errors, replica
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.resources import format_resources

_MOST = 20
_OF_STATE = {"good": "bold green", "warning": "bold yellow", "critical": "bold red", "unknown": "bold yellow"}

All = Annotated[bool, option("--all", "Confirm that this applies to the whole cluster; required")]
ProcessorName = Annotated[str, argument("NAME", "Name of the processor; in Kubernetes, its pod's name")]


def _tables(answer: Answer) -> RenderableType:
    shards = [_shards(answer)] if answer.get("shards") else []
    health = answer.get("health")  # replicas of 0.2.0 send none
    parts: list[RenderableType] = [_summary(answer), *shards, _replicas(answer), _processors(answer)]
    if health is not None:
        parts.insert(0, _verdict(health))
    if answer["quarantine"]:
        parts.append(_quarantine(answer))
    return Group(*parts)


def _verdict(health: Answer) -> RenderableType:
    """Return the verdict, then each problem with how urgent it is, the worst first, and what was not checked."""
    rows = Table.grid(padding=(0, 2))
    for problem in health["problems"]:
        is_urgent = problem["severity"] == "page"
        text = Text(problem["text"]).append(f" Since {instant_text(problem['since'])}.", style="dim")
        if problem["evidence"]:
            text.append(f"\n{problem['evidence']}", style="dim")
        rows.add_row(Text("Act now", style="bold red") if is_urgent else Text("Look today", style="bold yellow"), text)
    for each in health["unchecked"]:
        rows.add_row(Text("Not checked", style="bold yellow"), f"{each['rule']}: {each['reason']}")
    title = Text(health["title"], style=_OF_STATE.get(health["state"], "bold"))
    checked = Text(f"rules checked: {len(health['checked'])}\n", style="dim")
    return Group(title, Text(health["text"]), rows, checked)


def _summary(answer: Answer) -> Text:
    leader = answer["leader"]
    text = Text()
    if leader:
        text.append("leader ", style="dim").append(_name(leader["holder"]), style="bold green")
        text.append(f"   term {leader['term']}   since {instant_text(leader['since'])}")
    else:
        text.append("nobody leads", style="bold red")
    counts = "   ".join(f"{name} {count}" for name, count in answer["counts"].items())
    text.append(f"\njournal {or_dash(answer['journal_seq'])}   {counts}")
    text.append(f"\nanswered by {_name(answer['replica_id'])}", style="dim")
    text.append(f"   schema version {answer['schema']['version']}", style="dim")
    return text if answer.get("health") else text.append(_trouble(answer))


def _trouble(answer: Answer) -> Text:
    """Return what a replica of 0.2.0, which gives no verdict, tells of problems."""
    text = Text()
    findings = answer["findings"]
    if findings and findings["counts"]:
        counts = ", ".join(f"{kind} {count}" for kind, count in findings["counts"].items())
        text.append(f"\nbroken: {counts}", style="bold red").append("   run hascheduler check for details", style="dim")
    if answer["mirrors_differ"]:
        text.append(f"\nits mirror differs from {', '.join(map(_name, answer['mirrors_differ']))}", style="bold red")
    if not answer["ready"]:
        text.append(f"   not ready: {answer['unready_reason']}", style="red")
    return text


def _shards(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {
        **plain(shard="name"),
        "leader": lambda row: (
            Text(_name(row["leader"]["holder"]), style="green") if row["leader"] else Text("nobody", style="bold red")
        ),
        "term": lambda row: str(row["leader"]["term"]) if row["leader"] else "–",
        **plain(journal="journal_seq"),
        **plain("pending", "running", "schedules", "processors"),
        "lag": lambda row: Text(row["unready_reason"], style="red") if row["unready_reason"] else _lag(row),
    }
    if any(row.get("followers") for row in answer["shards"]):  # replicas of an older release do not send it
        columns["followed by"] = lambda row: ", ".join(row["followers"]) or "all"
    shards = [{**row["counts"], **row} for row in answer["shards"]]
    return table_of("Shards", shards, columns, spare=("journal", "lag", "schedules"))


def _replicas(answer: Answer) -> RenderableType:
    holder = (answer["leader"] or {}).get("holder")
    columns: dict[str, Cell] = {
        "replica": lambda row: Text(_name(row["id"]), style="bold green" if row["id"] == holder else ""),
        "start": lambda row: _start(row["id"]),
        **plain("version", HTTP="http_endpoint"),
        "ready": lambda row: yes_or_no(row["ready"]) if row.get("alive", True) else Text("silent", style="red"),
        "lag": _lag,
        "digest": lambda row: row["digest"][:8],
        **plain(bad="quarantined"),
    }
    spare = ("start", "digest", "version", "HTTP", "bad", "lag")
    return table_of("Replicas", answer["replicas"], columns, spare)


def _lag(row: Answer) -> str:
    return "–" if row["stream_lag_ms"] is None else f"{row['stream_lag_ms']} ms"


def _processors(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {
        "processor": lambda row: _name(row["id"]),
        "start": lambda row: _start(row["id"]),
        "runs": lambda row: ", ".join(row["definitions"]),
        "slots": _slots,
        "resources": lambda row: format_resources(row["resources"]),
        "alive": lambda row: yes_or_no(row["alive"]),
        "draining": lambda row: state if (state := processor_state(row)) not in ("live", "lost") else "",
        **plain("parked"),
    }
    spare = ("start", "parked", "resources", "draining", "runs")
    return table_of("Processors", answer["processors"], columns, spare, wraps=("runs",))


def _slots(processor: Answer) -> str:
    return f"{processor['occupied']}/{processor['slots']}"


def _quarantine(answer: Answer) -> RenderableType:
    columns = plain("collection", "id", "reason")
    title = "Quarantine: unreadable documents"
    return table_of(title, answer["quarantine"], columns, spare=("collection",), wraps=("reason",))


def _name(id: str) -> str:
    """Return the name that people use and `kubectl delete pod` takes: the id without `_start`, new with each start."""
    return id.rpartition(".")[0] or id


def _start(id: str) -> str:
    return id.rpartition(".")[2] if "." in id else ""


@example("hascheduler cluster --watch")
@asks(_tables, tables=2, watch_s=1)
def cluster(scheduler: Scheduler) -> Answer:
    """Show the leader, replicas, processors and problems."""
    return {**scheduler.cluster.status(), "processors": scheduler.cluster.processors()}


def _health_line(answer: Answer) -> Text:
    asked = next(iter(answer))
    text = f"not {asked}: {answer['reason']}" if answer["reason"] else asked
    return Text(text, style="red" if answer["reason"] else "green")


@example("hascheduler health http://127.0.0.1:9090 --live")
@prints(_health_line)
def health(
    url: Annotated[
        str | None,
        argument("[URL]", "A replica or a health port; by default the HASCHEDULER_HEALTH_PORT of this machine"),
    ] = None,
    *,
    live: Annotated[bool, option("--live", "Only fail if the process must be restarted")] = False,
) -> Shown:
    """Check that a replica or processor is ready, or say why not with exit status 1.

    Without a URL and without HASCHEDULER_HEALTH_PORT it asks the replica at HASCHEDULER_URL.
    """
    asked = access(url or own_url())
    with replica(asked if url is None else replace(asked, url_from="URL")) as scheduler:
        reason = scheduler.cluster.health(live=live)
    answer = {"alive" if live else "ready": not reason, "reason": reason}
    return Shown(answer, _health_line(answer), status=1 if reason else 0)


def _failovers_table(answer: Answer) -> RenderableType:
    items = answer["items"]
    columns: dict[str, Cell] = {
        **plain("shard", "term"),
        "at": lambda item: instant_text(item["deciding_at"]),
        "leader": lambda item: _name(item["holder"]),
        **plain("cause"),
        "gap": lambda item: "–" if item["gap_ms"] is None else f"{item['gap_ms']} ms",
        "first decision": lambda item: instant_text(item["first_decision_at"]),
    }
    if len({item["shard"] for item in items}) == 1:
        del columns["shard"]
    none = "No change of leadership has been reported yet."
    return table_of("", items, columns, spare=("first decision", "leader", "cause"), none=none)


@example("hascheduler cluster failovers --limit 10", "hascheduler cluster failovers -o json")
@asks(_failovers_table, tables=1)
def failovers(
    scheduler: Scheduler,
    limit: Annotated[int, option("--limit N", "How many, newest first", min=1, max=_MOST)] = _MOST,
) -> Answer:
    """List changes of leader, with the reason and the time without a leader."""
    return {"items": scheduler.cluster.failovers(limit)}


def _since(paused: Answer) -> str:
    return f"since {instant_text(paused['since'])} by {paused['by']}: {paused['because']}"


def _demand_all(command: str, *, everything: bool) -> None:
    if not everything:
        raise InvalidInput(("--all",), "missing", f"--all, or for one schedule: hascheduler schedule {command} NAME")


def _paused_line(answer: Answer) -> str:
    """Return ``everything is paused since 2030-01-01T00:00:00Z by deployer: the database moves``."""
    paused = answer["paused"]
    if paused is None:
        return "nothing is paused"
    return f"{'all schedules are' if paused['schedules_only'] else 'everything is'} paused {_since(paused)}"


@example('hascheduler pause --all --because "the database of the invoices moves"')
@asks(_paused_line)
def pause(
    scheduler: Scheduler,
    everything: All = False,
    because: Annotated[str | None, option("--because TEXT", "Reason, shown to others; required")] = None,
    schedules_only: Annotated[bool, option("--schedules-only", "Pause only schedules; waiting jobs still run")] = False,
) -> Answer:
    """Pause everything: no schedule fires and no job starts.

    The pause lasts until `hascheduler resume --all`, also when the leader changes. Dispatched jobs run to their end.
    After the pause each schedule catches up by its misfire policy.
    """
    _demand_all("pause", everything=everything)
    if because is None:
        raise InvalidInput(("--because",), "missing", "a reason to show to others")
    return scheduler.cluster.pause(because, schedules_only=schedules_only)


def _resumed_lines(answer: Answer) -> str:
    resumed = answer.get("resumed")
    if resumed is None:
        return "nothing is paused"
    what = "all schedules, paused" if resumed["schedules_only"] else "everything, paused"
    late, waiting = (or_dash(answer.get(name)) for name in ("late_schedules", "waiting_jobs"))
    return f"resumed {what} {_since(resumed)}\nschedules later than their grace: {late}   waiting jobs: {waiting}"


@example("hascheduler resume --all")
@asks(_resumed_lines)
def resume(scheduler: Scheduler, everything: All = False) -> Answer:
    """Resume what `hascheduler pause` has paused.

    Shows since when it was paused, how many schedules have times later than their grace, and how many jobs wait.
    Schedules that were paused individually stay paused, and drained processors stay drained.
    """
    _demand_all("resume", everything=everything)
    waited: dict[str, Any] = {}
    with suppress(WorldError), as_cli_errors():  # not being able to count is no reason not to resume
        waited["waiting_jobs"] = scheduler.cluster.status()["counts"].get("pending")
        waited["late_schedules"] = scheduler.schedules.count().get("late")
    return {**scheduler.cluster.resume(), **waited}


def processor_state(processor: Answer) -> str:
    """Return the state of a processor in one word or two.

    ``lost``, ``resting`` (it did not start its last jobs), ``not consuming`` its queue, ``drained`` (nothing runs there
    any more), ``draining`` or ``live``.
    """
    if not processor["alive"]:
        return "lost"
    # Replicas of an older release know neither rests nor drains.
    if not processor["draining"]:
        return "resting" if processor.get("rest") else "live"
    if not processor.get("drained") and not processor.get("consuming", True):
        return "not consuming"
    return "drained" if processor.get("drained") and not processor["occupied"] else "draining"


def _drains_table(answer: Answer) -> RenderableType:
    absent = [{"definitions": ["–"], "drained": drain, **drain} for drain in answer.get("absent", ())]
    columns: dict[str, Cell] = {
        **plain(processor="name"),
        "runs": lambda one: ", ".join(one["definitions"]),
        "occupied": lambda one: _slots(one) if "slots" in one else "–",
        "state": _state_text,
        "since": lambda one: instant_text(one["since"]),
        **plain("by", "because"),
    }
    rows = [{"since": None, **(one.get("drained") or {}), **one} for one in [*answer["items"], *absent]]
    return table_of(
        "", rows, columns, spare=("runs", "by", "since"), wraps=("because", "runs"), none="There are no processors."
    )


def _state_text(one: Answer) -> Text:
    if "slots" not in one:
        return Text("absent, drained", style="dim")
    state = processor_state(one)
    return Text(state, style={"live": "green", "lost": "red"}.get(state, "yellow"))


def _drained_line(answer: Answer) -> str:
    drained = answer["drained"]
    if drained is None:
        return f"{answer['name']} gets jobs again"
    reason = "" if drained["because"] is None else f": {drained['because']}"
    return f"{answer['name']} is drained since {instant_text(drained['since'])} by {drained['by']}{reason}"


@example("hascheduler processor list", "hascheduler processor list -o json")
@asks(_drains_table, tables=1)
def list_processors(scheduler: Scheduler) -> Answer:
    """List the processors, and which are drained."""
    return scheduler.cluster.processor_list()


@example('hascheduler processor drain resizer-0 --because "its node is being replaced"')
@asks(_drained_line)
def drain(
    scheduler: Scheduler,
    name: ProcessorName,
    because: Because = None,
) -> Answer:
    """Stop giving new jobs to the processors of a name, until they are undrained.

    Running jobs run to their end; `hascheduler processor list` shows when they have. A processor that starts again
    under that name is drained too.
    """
    return scheduler.cluster.drain(name, because)


@example("hascheduler processor undrain resizer-0")
@asks(_drained_line)
def undrain(scheduler: Scheduler, name: ProcessorName) -> Answer:
    """Give jobs to drained processors again."""
    return scheduler.cluster.undrain(name)


def _audit_table(answer: Answer) -> RenderableType:
    columns: dict[str, Cell] = {
        "at": lambda record: instant_text(record["at"]),
        **plain("who", "tenant", **{"from": "address"}),
        "request": lambda record: f"{record['method']} {record['path']}",
        "answer": lambda record: Text(str(record["status"]), style="" if record["status"] < 400 else "red"),
        **plain("because"),
    }
    return table_of(
        "",
        answer["items"],
        columns,
        spare=("from", "tenant", "because", "answer"),
        wraps=("because",),
        none="No audit log records match.",
    )


@example(
    "hascheduler audit-log --path /v1/schedules --limit 100",
    "hascheduler audit-log --who deployer --since 2030-01-01T00:00:00Z -o json",
)
@asks(_audit_table, tables=1)
def audit_log(
    scheduler: Scheduler,
    *,
    who: Annotated[str | None, option("--who NAME", "Only by the token with this name or id")] = None,
    tenant: Annotated[str | None, option("--tenant NAME", "Only by this tenant's tokens", complete_tenant)] = None,
    path: Annotated[str | None, option("--path PREFIX", "Only paths with this prefix")] = None,
    since: Annotated[str | None, option("--since INSTANT", "Only since this instant, RFC 3339 with an offset")] = None,
    limit: Annotated[int, option("--limit N", "How many, newest first", min=1, max=100_000)] = 50,
) -> Answer:
    """Show the audit log: who changed what, newest first."""
    found = scheduler.cluster.audit(who=who, tenant=tenant, path=path, since=since)
    return {"items": list(islice(found, limit))}
