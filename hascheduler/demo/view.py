"""The demo for a person's eyes: a live panel on a terminal, plain lines anywhere else."""

import asyncio
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hascheduler.clock import SystemClock
from hascheduler.demo.evidence import clock_time, percentile
from hascheduler.demo.watch import Sight
from hascheduler.embedded.stack import Stack

_REFRESH_PER_SECOND = 5
_LINE_EVERY_S = 2.0
_EVENTS_SHOWN = 9


class View:
    """``say`` reports an event; `keep_showing` shows how things stand until cancelled."""

    def __init__(self, console: Console, sight: Sight) -> None:
        self._console = console
        self._sight = sight
        self._clock = SystemClock()
        self._live = False

    def say(self, what: str) -> None:
        now = self._clock.wall_ms()
        self._sight.events.append((now, what))
        if not self._live:
            self._console.print(f"{clock_time(now)}  {what}", highlight=False)

    async def keep_showing(self, stack: Stack) -> None:
        if not self._console.is_terminal:
            while True:
                await asyncio.sleep(_LINE_EVERY_S)
                self._console.print(f"{clock_time(self._clock.wall_ms())}  {self._line()}", highlight=False)
        self._live = True
        try:
            with Live(
                console=self._console,
                refresh_per_second=_REFRESH_PER_SECOND,
                get_renderable=lambda: self._panel(stack),
                transient=True,
            ):
                await asyncio.Event().wait()
        finally:
            self._live = False

    def _line(self) -> str:
        cluster = self._sight.cluster
        leader = _leader(cluster)
        running = cluster["counts"]["running"] if cluster else 0
        return f"{leader}; {self._sight.effects} effects, {running} running; {_lags(self._sight)}"

    def _panel(self, stack: Stack) -> Panel:
        cluster = self._sight.cluster
        head = Text.assemble(
            (_leader(cluster), "bold green" if cluster and cluster["leader"] else "bold red"),
            f"    {self._sight.effects} effects    {_lags(self._sight)}    transport {stack.transport}",
        )
        tables = Table.grid(padding=(0, 3))
        tables.add_row(_replicas(stack, cluster), _processors(stack, self._sight.processors))
        log = Table.grid(padding=(0, 2))
        for at_ms, what in self._sight.events[-_EVENTS_SHOWN:]:
            log.add_row(Text(clock_time(at_ms), style="dim"), what)
        return Panel(Group(head, Text(), tables, Text(), log), title="hascheduler demo", border_style="blue")


def _leader(cluster: dict[str, Any] | None) -> str:
    if cluster is None or cluster["leader"] is None:
        return "nobody leads"
    return f"{cluster['leader']['holder'].rpartition('.')[0]} leads term {cluster['leader']['term']}"


def _lags(sight: Sight) -> str:
    lags = list(sight.lags_ms)
    return f"lag p50 {percentile(lags, 50)} ms, p99 {percentile(lags, 99)} ms"


def _replicas(stack: Stack, cluster: dict[str, Any] | None) -> Table:
    table = Table(title="replicas", title_justify="left", box=None, padding=(0, 1))
    for column in ("name", "pid", "role", "stream lag"):
        table.add_column(column, justify="left")
    known = {replica["id"]: replica for replica in cluster["replicas"]} if cluster else {}
    holder = cluster["leader"]["holder"] if cluster and cluster["leader"] else ""
    for name, child in stack.replicas.items():
        newest = max(
            (replica for replica in known.values() if replica["name"] == name),
            key=lambda replica: str(replica["started_at"]),
            default=None,
        )
        if not child.running:
            table.add_row(name, str(child.pid), Text("dead", style="bold red"), "")
        elif newest is None or not newest["ready"]:
            table.add_row(name, str(child.pid), Text("starting", style="yellow"), "")
        else:
            leads = newest["id"] == holder
            role = Text("leads" if leads else "follows", style="bold green" if leads else "")
            table.add_row(name, str(child.pid), role, f"{newest['stream_lag_ms']} ms")
    return table


def _processors(stack: Stack, processors: list[dict[str, Any]]) -> Table:
    table = Table(title="processors", title_justify="left", box=None, padding=(0, 1))
    for column in ("name", "pid", "state", "busy slots"):
        table.add_column(column, justify="left")
    for name, child in stack.processors.items():
        alive = [processor for processor in processors if processor["name"] == name and processor["alive"]]
        busy = sum(processor["occupied"] for processor in alive)
        slots = sum(processor["slots"] for processor in alive)
        if not child.running:
            table.add_row(name, str(child.pid), Text("dead", style="bold red"), "")
        else:
            state = Text("works", style="green") if alive else Text("starting", style="yellow")
            table.add_row(name, str(child.pid), state, f"{'█' * busy}{'·' * (slots - busy)}")
    return table
