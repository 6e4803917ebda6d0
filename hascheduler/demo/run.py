"""The demo from its start to its report: what is shown meanwhile, and the verdict that becomes the exit status."""

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hascheduler.demo.environment import ClusterSnapshot, DemoEnvironment
from hascheduler.demo.evidence import Effect, Effects, evaluate
from hascheduler.demo.scenario import DemoScenario, Kill, RunRecord
from hascheduler.simulate.report import percentile

OpenEnvironment = Callable[[str, Callable[[str], None]], AbstractAsyncContextManager[DemoEnvironment]]
"""Opens an environment: gets an id for this run, and a function that shows a line to the user."""
_AFTER_KILL_MS = 6_000
"""A job that its processor took along moves on after the heartbeat timeout of 5 s."""
_SHOWN_MAX = 10
_GOOD, _FAULTY, _UNDECIDED = 0, 1, 3
"""Exit statuses; 2 is the caller's fault everywhere."""
_REFRESH_PER_SECOND = 4
_LINE_EVERY_S = 2.0


async def run_demo(console: Console, open_environment: OpenEnvironment, *, keep: bool, pause_s: float) -> int:
    """Run the scenario and print the report; with ``keep`` leave everything running until cancelled.

    Returns the exit status: 0 if nothing was lost or doubled, 1 if something was, 3 if pending jobs would tell.
    """
    effects, record = Effects(), RunRecord()
    view = Dashboard(console, effects, record)
    async with open_environment(secrets.token_hex(3), view.say) as environment:
        effects.prefix = f"fire:{environment.prefix}"
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(loop(environment)) for loop in (view.keep_looking, view.keep_showing)]
            await DemoScenario(environment, effects, view.say, record, pause_s).run()
            for task in loops:
                task.cancel()
        status = print_report(console, record, effects.all)
        if keep:
            for listed in environment.listing():
                console.print(listed, soft_wrap=True)
            console.print("Everything is left running, until Ctrl-C.")
            await asyncio.Event().wait()
    return status


class Dashboard:
    """How things stand, until cancelled: a live panel on a terminal, plain lines elsewhere; events above it in both."""

    def __init__(self, console: Console, effects: Effects, record: RunRecord) -> None:
        self._console = console
        self._effects = effects
        self._record = record
        self._latest: ClusterSnapshot | None = None

    def say(self, what: str) -> None:
        """Report an event."""
        line = Text.assemble((f"{datetime.now().astimezone():%H:%M:%S}  ", "dim"), what)
        self._console.print(line, soft_wrap=True)

    async def keep_looking(self, environment: DemoEnvironment) -> None:
        while True:
            self._effects.read(environment.outputs())
            self._latest = await environment.api.snapshot() or self._latest
            await asyncio.sleep(environment.poll_every_s)

    async def keep_showing(self, environment: DemoEnvironment) -> None:
        if not self._console.is_terminal:
            while True:
                await asyncio.sleep(_LINE_EVERY_S)
                self.say(f"{_leader(self._latest)}    {self._figures(environment.wall_ms())}")
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self._panel(environment), refresh=True)
                await asyncio.sleep(1 / _REFRESH_PER_SECOND)

    def _figures(self, now_ms: int) -> str:
        """Up to now: nominal times that are over, jobs that started, those that run, and their lag."""
        due = sum(1 for one in self._record.expectations if one.logs for _ in one.jobs_until(now_ms))
        started = len({effect.job_id for effect in self._effects.all})
        running = self._latest.cluster["counts"]["running"] if self._latest else 0
        lags = [effect.lag_ms for effect in self._effects.all]
        return (
            f"due {due}, fired {started}    running {running}    "
            f"lag p50 {percentile(lags, 50)} ms, p99 {percentile(lags, 99)} ms"
        )

    def _panel(self, environment: DemoEnvironment) -> Panel:
        latest = self._latest
        tables = Table.grid(padding=(0, 4))
        tables.add_row(_replicas_table(environment, latest), _processors_table(environment, latest))
        style = "bold green" if latest and latest.cluster["leader"] else "bold red"
        return Panel(
            Group(Text(_leader(latest), style=style), self._figures(environment.wall_ms()), "", tables),
            title=f"hascheduler demo, {environment.title}",
            border_style="blue",
        )


def _leader(latest: ClusterSnapshot | None) -> str:
    if latest is None:
        return "nobody leads"
    if latest.cluster.get("shards"):
        holders = _holders(latest.cluster).items()
        return "    ".join(f"{name}: {holder.rpartition('.')[0] or 'nobody'}" for name, holder in holders)
    leader = latest.cluster["leader"]
    return f"{leader['holder'].rpartition('.')[0]} leads term {leader['term']}" if leader else "nobody leads"


def _holders(cluster: Mapping[str, Any]) -> Mapping[str, str]:
    """Of several shards, by name, the id of the replica that leads it, "" for none."""
    return {
        shard["name"]: shard["leader"]["holder"] if shard["leader"] else "" for shard in cluster.get("shards") or ()
    }


def _replicas_table(environment: DemoEnvironment, latest: ClusterSnapshot | None) -> Table:
    table = _members_table("replicas", environment.where, "role", "stream lag")
    cluster: Mapping[str, Any] = latest.cluster if latest else {"replicas": [], "leader": None}
    holder = cluster["leader"]["holder"] if cluster["leader"] else ""
    for member in environment.replicas():
        starts = [replica for replica in cluster["replicas"] if replica["name"] == member.name]
        newest = max(starts, key=lambda replica: str(replica["started_at"]), default=None)
        lag = ""
        if not member.running:
            role = Text("dead", style="bold red")
        elif newest is None or not newest["ready"]:
            role = Text("starting", style="yellow")
        else:
            led = [name for name, by in _holders(cluster).items() if by == newest["id"]]
            leads = newest["id"] == holder or bool(led)
            role = Text(" ".join(["leads", *led]) if leads else "follows", style="bold green" if leads else "")
            lag = f"{newest['stream_lag_ms']} ms"
        table.add_row(member.name, member.where, role, lag)
    return table


def _processors_table(environment: DemoEnvironment, latest: ClusterSnapshot | None) -> Table:
    table = _members_table("processors", environment.where, "state", "busy slots")
    known = [one for one in latest.processors if one["alive"]] if latest else []
    for member in environment.processors():
        newest = [one for one in known if one["name"] == member.name][-1:]
        if not member.running:
            table.add_row(member.name, member.where, Text("dead", style="bold red"), "")
        elif not newest:
            table.add_row(member.name, member.where, Text("starting", style="yellow"), "")
        else:
            busy, slots = newest[0]["occupied"], newest[0]["slots"]
            table.add_row(member.name, member.where, Text("works", style="green"), "█" * busy + "·" * (slots - busy))
    return table


def _members_table(title: str, *columns: str) -> Table:
    return Table("name", *columns, title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))


def print_report(console: Console, record: RunRecord, effects: list[Effect]) -> int:
    """Print what was expected and what happened; the exit status, as of `run_demo`."""
    assert record.until_ms is not None, "the scenario has ended"
    until_ms = record.until_ms
    verdict = evaluate(record.expectations, effects, record.jobs, until_ms=until_ms, killed=record.killed)
    due = [effect for effect in effects if effect.nominal_ms is None or effect.nominal_ms <= until_ms]
    faults = (verdict.missed, verdict.doubled, verdict.unexpected)
    columns = ("expected", "fired", "pending", "missed", "doubled", "unexpected", "run again")
    table = _report_table("Nominal times", *columns, left=0)
    table.add_row(
        str(verdict.expected),
        str(verdict.fired),
        f"[yellow]{len(verdict.pending)}" if verdict.pending else "0",
        *(f"[{'red' if jobs else 'green'}]{len(jobs)}" for jobs in faults),
        str(len(verdict.rerun)),
    )
    console.print(table)
    _print_lags(console, record, due)
    _print_kills(console, record, due)
    if record.shards:
        _print_shards(console, record, due)
    named = {"missed": verdict.missed, "pending": verdict.pending}
    for what, jobs in (named | {"doubled": verdict.doubled, "unexpected": verdict.unexpected}).items():
        for job_id in jobs[:_SHOWN_MAX]:
            colour = "yellow" if what == "pending" else "red"
            console.print(f"[{colour}]{what}[/{colour}] {job_id}")
    if verdict.unseen:
        console.print(
            f"{len(verdict.unseen)} that succeeded left no line: the processor pod that was killed took it along"
        )
    if verdict.faulty:
        console.print("[bold red]Something was lost or doubled.[/bold red]")
        return _FAULTY
    if verdict.pending:
        console.print(
            f"[bold yellow]Nothing missed or doubled so far; {len(verdict.pending)} jobs are late and still to run.[/]"
        )
        return _UNDECIDED
    console.print("[bold green]Nothing missed, nothing doubled.[/bold green]")
    return _GOOD


def _report_table(title: str, *columns: str, left: int = 1) -> Table:
    """So many columns, the first ones, are of text."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right")
    return table


def _print_lags(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    table = _report_table("Lag from nominal time to handler start, ms", "", "effects", "p50", "p99", "worst")
    shaken = [effect for effect in effects if any(_near(effect, kill) for kill in record.kills)]
    quiet = [effect for effect in effects if not any(_near(effect, kill) for kill in record.kills)]
    for name, part in (("quiet", quiet), ("until 6 s after a kill", shaken), ("all", effects)):
        lags = [effect.lag_ms for effect in part]
        figures = (len(part), percentile(lags, 50), percentile(lags, 99), max(lags, default=0))
        table.add_row(name, *(str(figure) for figure in figures))
    console.print(table)


def _print_kills(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    table = _report_table("Kills", "what", "next term decides", "worst lag after it")
    for kill in record.kills:
        took = f"after {max(kill.took_ms.values())} ms" if kill.took_ms else "–"
        table.add_row(kill.what, took, _worst(effects, kill))
    console.print(table)


def _print_shards(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    """What each kill was to each shard: it has a leader of its own, so most kills are nothing to it."""
    table = _report_table("Failovers by shard", "shard", "what", "next term decides", "worst lag after it", left=2)
    for shard in record.shards:
        its = [effect for effect in effects if record.shard_of.get(effect.schedule) == shard]
        for kill in record.kills:
            if kill.took_ms:
                took = f"after {kill.took_ms[shard]} ms" if shard in kill.took_ms else "not led by it"
                table.add_row(shard, kill.what, took, _worst(its, kill))
    console.print(table)


def _worst(effects: list[Effect], kill: Kill) -> str:
    return f"{max((effect.lag_ms for effect in effects if _near(effect, kill)), default=0)} ms"


def _near(effect: Effect, kill: Kill) -> bool:
    return kill.at_ms <= effect.at_ms <= kill.over_ms + _AFTER_KILL_MS
