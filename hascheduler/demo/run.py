"""The demo from its start to its report: what is shown meanwhile, and the verdict that becomes the exit status."""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from hascheduler.demo.scenario import DemoScenario, Kill, RunRecord, jobs_text
from hascheduler.simulate.report import percentile

OpenEnvironment = Callable[[str, Callable[[str], None]], AbstractAsyncContextManager[DemoEnvironment]]
"""Opens an environment from an id for this run and a function that shows a line to the user."""
_AFTER_KILL_MS = 6_000
"""A job of the killed processor moves on after the heartbeat timeout of 5 s."""
_SHOWN_MAX = 10
_GOOD, _FAULTY, _UNDECIDED = 0, 1, 3
"""Exit statuses; 2 is the caller's fault everywhere."""
_REFRESH_PER_SECOND = 4
_LINE_EVERY_S = 2.0


async def run_demo(console: Console, open_environment: OpenEnvironment, *, keep: bool, pause_s: float) -> int:
    """Run the scenario and print the report; with ``keep`` leave everything running until cancelled.

    Return the exit status: 0 if nothing was lost or doubled, 1 if something was, 3 if pending jobs leave it open.
    """
    effects, record = Effects(), RunRecord()
    view = Dashboard(console, effects, record)
    async with open_environment(secrets.token_hex(3), view.say) as environment:
        effects.prefix = f"fire:{environment.prefix}"
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(loop(environment)) for loop in (view.keep_polling, view.keep_showing)]
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
    """The live state, until cancelled: a panel on a terminal, plain lines elsewhere; events above it in both."""

    def __init__(self, console: Console, effects: Effects, record: RunRecord) -> None:
        self._console = console
        self._effects = effects
        self._record = record
        self._latest: ClusterSnapshot | None = None

    def say(self, what: str) -> None:
        """Report an event."""
        line = Text.assemble((f"{datetime.now().astimezone():%H:%M:%S}  ", "dim"), what)
        self._console.print(line, soft_wrap=True)

    async def keep_polling(self, environment: DemoEnvironment) -> None:
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
        """Return the figures so far: nominal times that have passed, jobs started and running, and their lag."""
        due = sum(1 for one in self._record.expectations if one.logs for _ in one.jobs_until(now_ms))
        started = len({effect.job_id for effect in self._effects.all})
        running = self._latest.cluster["counts"]["running"] if self._latest else 0
        lags = [effect.lag_ms for effect in self._effects.all]
        return (
            f"due {due}, fired {started}    running {running}    "
            f"lag p50 {percentile(lags, 50)} ms, p99 {percentile(lags, 99)} ms"
        )

    def _panel(self, environment: DemoEnvironment) -> Panel:
        leader = _leader(self._latest)
        style = "bold red" if "no leader" in leader else "bold green"
        parts = (
            Text(leader, style=style),
            self._figures(environment.wall_ms()),
            "",
            _members(environment, self._latest),
        )
        return Panel(Group(*parts), title=f"hascheduler demo, {environment.title}", border_style="blue")


def _leader(latest: ClusterSnapshot | None) -> str:
    if latest is None:
        return "no leader"
    if shards := latest.cluster.get("shards"):
        return "    ".join(f"{shard['name']}: {_holder(shard).rpartition('.')[0] or 'no leader'}" for shard in shards)
    leader = latest.cluster["leader"]
    return f"{leader['holder'].rpartition('.')[0]} leads term {leader['term']}" if leader else "no leader"


def _holder(led: Mapping[str, Any]) -> str:
    """Return the id of the replica that leads the cluster or the shard; "" if none does."""
    return str(led["leader"]["holder"]) if led["leader"] else ""


def _members(environment: DemoEnvironment, latest: ClusterSnapshot | None) -> Table:
    """Return a line for each replica and processor, by its newest start, with its state and stream lag or slots."""
    table = Table("name", environment.where, "state", "", box=None, padding=(0, 2, 0, 0))
    cluster: Mapping[str, Any] = latest.cluster if latest else {"replicas": [], "leader": None}
    replicas = {one["name"]: one for one in sorted(cluster["replicas"], key=lambda one: str(one["started_at"]))}
    processors = {one["name"]: one for one in latest.processors if one["alive"]} if latest else {}
    for member in (*environment.replicas(), *environment.processors()):
        state, detail = "[yellow]starting", ""
        if not member.running:
            state = "[bold red]dead"
        elif (replica := replicas.get(member.name)) and replica["ready"]:
            led = [shard["name"] for shard in cluster.get("shards") or () if _holder(shard) == replica["id"]]
            leads = led or _holder(cluster) == replica["id"]
            state = f"[bold green]{' '.join(['leads', *led])}" if leads else "follows"
            detail = f"{replica['stream_lag_ms']} ms behind"
        elif processor := processors.get(member.name):
            busy = processor["occupied"]
            state, detail = "[green]works", "█" * busy + "·" * (processor["slots"] - busy)
        table.add_row(member.name, member.where, state, detail)
    return table


def print_report(console: Console, record: RunRecord, effects: list[Effect]) -> int:
    """Print what was expected and what happened; return the exit status of `run_demo`."""
    until_ms = record.until_ms
    assert until_ms is not None, "the scenario has ended"
    verdict = evaluate(record.expectations, effects, record.jobs, until_ms=until_ms, killed=record.killed)
    named = {"missed": verdict.missed, "doubled": verdict.doubled, "unexpected": verdict.unexpected}
    columns = ("expected", "fired", "pending", *named, "run again")
    pending = f"[yellow]{len(verdict.pending)}" if verdict.pending else "0"
    faults = [f"[{'red' if jobs else 'green'}]{len(jobs)}" for jobs in named.values()]
    row = (verdict.expected, verdict.fired, pending, *faults, len(verdict.rerun))
    _print_table(console, "Nominal times", columns, [row], left=0)
    due = [effect for effect in effects if effect.nominal_ms is None or effect.nominal_ms <= until_ms]
    _print_lags(console, record.kills, due)
    kills = [
        (kill.what, f"after {max(kill.took_ms.values())} ms" if kill.took_ms else "–", _worst(due, kill))
        for kill in record.kills
    ]
    _print_table(console, "Kills", ("what", "next term decides", "worst lag after it"), kills)
    if record.shards:
        _print_shards(console, record, due)
    for what, jobs in (named | {"pending": verdict.pending}).items():
        for job_id in jobs[:_SHOWN_MAX]:
            console.print(f"[{'yellow' if what == 'pending' else 'red'}]{what}[/] {job_id}")
    if verdict.unseen:
        console.print(f"{jobs_text(len(verdict.unseen))} succeeded without a line: the killed processor pod lost it")
    if verdict.faulty:
        console.print("[bold red]Something was lost or doubled.[/]")
        return _FAULTY
    if verdict.pending:
        late = jobs_text(len(verdict.pending))
        console.print(f"[bold yellow]Nothing missed or doubled so far; late and still to run: {late}.[/]")
        return _UNDECIDED
    console.print("[bold green]Nothing missed, nothing doubled.[/]")
    return _GOOD


def _print_table(
    console: Console, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], left: int = 1
) -> None:
    """Print a table with ``left`` columns of text, and the others of numbers."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right")
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def _print_lags(console: Console, kills: Sequence[Kill], effects: list[Effect]) -> None:
    shaken = {effect for effect in effects if any(_near(effect, kill) for kill in kills)}
    rows = []
    for name, part in (
        ("quiet", [effect for effect in effects if effect not in shaken]),
        ("until 6 s after a kill", [effect for effect in effects if effect in shaken]),
        ("all", effects),
    ):
        lags = [effect.lag_ms for effect in part]
        rows.append((name, len(lags), percentile(lags, 50), percentile(lags, 99), max(lags, default=0)))
    title = "Lag from nominal time to handler start, ms"
    _print_table(console, title, ("", "effects", "p50", "p99", "worst"), rows)


def _print_shards(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    """Print the effect of each kill on each shard: each has its own leader, so most kills do not affect it."""
    rows = []
    for shard in record.shards:
        its = [effect for effect in effects if record.shard_of.get(effect.schedule) == shard]
        for kill in record.kills:
            if kill.took_ms:
                took = f"after {kill.took_ms[shard]} ms" if shard in kill.took_ms else "not led by it"
                rows.append((shard, kill.what, took, _worst(its, kill)))
    columns = ("shard", "what", "next term decides", "worst lag after it")
    _print_table(console, "Failovers by shard", columns, rows, left=2)


def _worst(effects: list[Effect], kill: Kill) -> str:
    return f"{max((effect.lag_ms for effect in effects if _near(effect, kill)), default=0)} ms"


def _near(effect: Effect, kill: Kill) -> bool:
    return kill.at_ms <= effect.at_ms <= kill.over_ms + _AFTER_KILL_MS
