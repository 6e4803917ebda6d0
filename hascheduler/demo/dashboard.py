"""The demo for a person's eyes: a live panel on a terminal, plain lines anywhere else; events above it in both."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hascheduler.demo.environment import DemoEnvironment
from hascheduler.demo.evidence import Effect, Effects
from hascheduler.demo.scenario import Kill, RunRecord
from hascheduler.model.percentiles import percentile


@dataclass(slots=True)
class LatestAnswers:
    """The newest answers; ``cluster`` is None until one came."""

    cluster: dict[str, Any] | None = None
    processors: list[dict[str, Any]] = field(default_factory=list)


async def poll_system(stage: DemoEnvironment, effects: Effects, sight: LatestAnswers) -> None:
    """Keep ``effects`` and ``sight`` fresh until cancelled."""
    while True:
        effects.read(stage.outputs())
        look = await stage.look()
        if look is not None:
            sight.cluster = look.cluster
            sight.processors = look.processors
        await asyncio.sleep(stage.look_every_s)


_REFRESH_PER_SECOND = 4
_LINE_EVERY_S = 2.0
_PULSE_CELLS_MAX = 120


class Dashboard:
    """``say`` reports an event; `keep_showing` shows how things stand until cancelled."""

    def __init__(self, console: Console, sight: LatestAnswers, effects: Effects, told: RunRecord) -> None:
        self._console = console
        self._sight = sight
        self._effects = effects
        self._told = told

    def say(self, what: str) -> None:
        line = Text.assemble((f"{datetime.now().astimezone():%H:%M:%S}  ", "dim"), what)
        self._console.print(line, soft_wrap=True)

    async def keep_showing(self, stage: DemoEnvironment) -> None:
        if not self._console.is_terminal:
            while True:
                await asyncio.sleep(_LINE_EVERY_S)
                self.say("    ".join((_leader(self._sight.cluster), self._figures(stage.wall_ms()))))
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(self._panel(stage), refresh=True)
                await asyncio.sleep(1 / _REFRESH_PER_SECOND)

    def _figures(self, now_ms: int) -> str:
        """Up to now: nominal times that are over, jobs that started, those that run, and their lag."""
        due = sum(1 for one in self._told.expectations if one.logs for _ in one.jobs_until(now_ms))
        started = len({effect.job_id for effect in self._effects.all})
        running = self._sight.cluster["counts"]["running"] if self._sight.cluster else 0
        lags = [effect.lag_ms for effect in self._effects.all]
        return (
            f"due {due}, fired {started}    running {running}    "
            f"lag p50 {percentile(lags, 50)} ms, p99 {percentile(lags, 99)} ms"
        )

    def _panel(self, stage: DemoEnvironment) -> Panel:
        cluster = self._sight.cluster
        style = "bold green" if cluster and cluster["leader"] else "bold red"
        tables = Table.grid(padding=(0, 4))
        tables.add_row(_replicas_table(stage, cluster), _processors_table(stage, self._sight.processors))
        now_ms = stage.wall_ms()
        cells = max(1, min(_PULSE_CELLS_MAX, self._console.width - 4))  # the frame takes the rest
        pulse = draw_pulse(self._effects.all, self._told.kills, now_ms, cells=cells)
        return Panel(
            Group(Text(_leader(cluster), style=style), self._figures(now_ms), "", tables, "", pulse),
            title=f"hascheduler demo, {stage.title}",
            border_style="blue",
        )


def _leader(cluster: dict[str, Any] | None) -> str:
    if cluster is None or cluster["leader"] is None:
        return "nobody leads"
    return f"{cluster['leader']['holder'].rpartition('.')[0]} leads term {cluster['leader']['term']}"


def _replicas_table(stage: DemoEnvironment, cluster: dict[str, Any] | None) -> Table:
    table = Table(title="replicas", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("name", stage.where, "role", "stream lag"):
        table.add_column(column)
    known = cluster["replicas"] if cluster else []
    holder = cluster["leader"]["holder"] if cluster and cluster["leader"] else ""
    for member in stage.replicas():
        starts = [replica for replica in known if replica["name"] == member.name]
        newest = max(starts, key=lambda replica: str(replica["started_at"]), default=None)
        if not member.running:
            table.add_row(member.name, member.where, Text("dead", style="bold red"), "")
        elif newest is None or not newest["ready"]:
            table.add_row(member.name, member.where, Text("starting", style="yellow"), "")
        else:
            leads = newest["id"] == holder
            role = Text("leads" if leads else "follows", style="bold green" if leads else "")
            table.add_row(member.name, member.where, role, f"{newest['stream_lag_ms']} ms")
    return table


def _processors_table(stage: DemoEnvironment, processors: list[dict[str, Any]]) -> Table:
    table = Table(title="processors", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("name", stage.where, "state", "busy slots"):
        table.add_column(column)
    for member in stage.processors():
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


_CELL_MS = 500
_BARS = " ▁▂▃▄▅▆▇█"


def draw_pulse(effects: Sequence[Effect], kills: Sequence[Kill], now_ms: int, *, cells: int) -> Text:
    """Two lines of so many cells, the present at their right end."""
    newest = now_ms // _CELL_MS
    first = newest - cells + 1
    heights = Counter(effect.at_ms // _CELL_MS for effect in effects if effect.at_ms // _CELL_MS >= first)
    highest = max(heights.values(), default=1)
    bars = "".join(_bar(heights[cell], highest) for cell in range(first, newest + 1))
    marked = {kill.at_ms // _CELL_MS for kill in kills}
    marks = "".join("▲" if cell in marked else " " for cell in range(first, newest + 1))
    return Text.assemble((bars, "green"), "\n", (marks, "bold red"))


def _bar(height: int, highest: int) -> str:
    # Rounded up: a cell in which anything started is never empty.
    return _BARS[-(-height * (len(_BARS) - 1) // highest)]
