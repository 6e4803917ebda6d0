"""The demo on a screen: a live panel on a terminal, plain lines elsewhere; events above it in both."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hascheduler.demo.environment import DemoEnvironment
from hascheduler.demo.evidence import Effects
from hascheduler.demo.scenario import RunRecord
from hascheduler.simulate.report import percentile

_REFRESH_PER_SECOND = 4
_LINE_EVERY_S = 2.0


@dataclass(slots=True)
class LatestAnswers:
    """The newest answers; ``cluster`` is None until one came."""

    cluster: dict[str, Any] | None = None
    processors: list[dict[str, Any]] = field(default_factory=list)


async def poll_system(environment: DemoEnvironment, effects: Effects, latest: LatestAnswers) -> None:
    """Keep ``effects`` and ``latest`` fresh until cancelled."""
    while True:
        effects.read(environment.outputs())
        snapshot = await environment.snapshot()
        if snapshot is not None:
            latest.cluster = snapshot.cluster
            latest.processors = snapshot.processors
        await asyncio.sleep(environment.poll_every_s)


class Dashboard:
    """``say`` reports an event; `keep_showing` shows how things stand until cancelled."""

    def __init__(self, console: Console, latest: LatestAnswers, effects: Effects, record: RunRecord) -> None:
        self._console = console
        self._latest = latest
        self._effects = effects
        self._record = record

    def say(self, what: str) -> None:
        line = Text.assemble((f"{datetime.now().astimezone():%H:%M:%S}  ", "dim"), what)
        self._console.print(line, soft_wrap=True)

    async def keep_showing(self, environment: DemoEnvironment) -> None:
        if not self._console.is_terminal:
            while True:
                await asyncio.sleep(_LINE_EVERY_S)
                self.say("    ".join((_leader(self._latest.cluster), self._figures(environment.wall_ms()))))
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self._panel(environment), refresh=True)
                await asyncio.sleep(1 / _REFRESH_PER_SECOND)

    def _figures(self, now_ms: int) -> str:
        """Up to now: nominal times that are over, jobs that started, those that run, and their lag."""
        due = sum(1 for one in self._record.expectations if one.logs for _ in one.jobs_until(now_ms))
        started = len({effect.job_id for effect in self._effects.all})
        running = self._latest.cluster["counts"]["running"] if self._latest.cluster else 0
        lags = [effect.lag_ms for effect in self._effects.all]
        return (
            f"due {due}, fired {started}    running {running}    "
            f"lag p50 {percentile(lags, 50)} ms, p99 {percentile(lags, 99)} ms"
        )

    def _panel(self, environment: DemoEnvironment) -> Panel:
        cluster = self._latest.cluster
        style = "bold green" if cluster and cluster["leader"] else "bold red"
        tables = Table.grid(padding=(0, 4))
        tables.add_row(_replicas_table(environment, cluster), _processors_table(environment, self._latest.processors))
        return Panel(
            Group(Text(_leader(cluster), style=style), self._figures(environment.wall_ms()), "", tables),
            title=f"hascheduler demo, {environment.title}",
            border_style="blue",
        )


def _leader(cluster: dict[str, Any] | None) -> str:
    if cluster is None or (cluster["leader"] is None and not cluster.get("shards")):
        return "nobody leads"
    if cluster.get("shards"):
        return "    ".join(f"{name}: {holder.rpartition('.')[0] or 'nobody'}" for name, holder in _holders(cluster))
    return f"{cluster['leader']['holder'].rpartition('.')[0]} leads term {cluster['leader']['term']}"


def _holders(cluster: dict[str, Any]) -> list[tuple[str, str]]:
    """Of several shards the name, and the id of the replica that leads it, "" for none."""
    return [(shard["name"], shard["leader"]["holder"] if shard["leader"] else "") for shard in cluster["shards"]]


def _replicas_table(environment: DemoEnvironment, cluster: dict[str, Any] | None) -> Table:
    table = Table(title="replicas", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("name", environment.where, "role", "stream lag"):
        table.add_column(column)
    known = cluster["replicas"] if cluster else []
    holder = cluster["leader"]["holder"] if cluster and cluster["leader"] else ""
    for member in environment.replicas():
        starts = [replica for replica in known if replica["name"] == member.name]
        newest = max(starts, key=lambda replica: str(replica["started_at"]), default=None)
        if not member.running:
            table.add_row(member.name, member.where, Text("dead", style="bold red"), "")
        elif newest is None or not newest["ready"]:
            table.add_row(member.name, member.where, Text("starting", style="yellow"), "")
        else:
            led = [name for name, by in _holders(cluster) if by == newest["id"]] if cluster else []
            leads = newest["id"] == holder or bool(led)
            role = Text(" ".join(["leads", *led]) if leads else "follows", style="bold green" if leads else "")
            table.add_row(member.name, member.where, role, f"{newest['stream_lag_ms']} ms")
    return table


def _processors_table(environment: DemoEnvironment, processors: list[dict[str, Any]]) -> Table:
    table = Table(title="processors", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("name", environment.where, "state", "busy slots"):
        table.add_column(column)
    for member in environment.processors():
        alive = [processor for processor in processors if processor["name"] == member.name and processor["alive"]]
        newest = alive[-1:]
        busy = sum(processor["occupied"] for processor in newest)
        slots = sum(processor["slots"] for processor in newest)
        if not member.running:
            table.add_row(member.name, member.where, Text("dead", style="bold red"), "")
        else:
            state = Text("works", style="green") if newest else Text("starting", style="yellow")
            table.add_row(member.name, member.where, state, f"{'█' * busy}{'·' * (slots - busy)}")
    return table
