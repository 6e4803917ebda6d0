"""The demo from its start to its report: tables, and the verdict that becomes the exit status."""

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from rich.console import Console
from rich.table import Table

from hascheduler.demo.dashboard import Dashboard, LatestAnswers, poll_system
from hascheduler.demo.environment import DemoEnvironment
from hascheduler.demo.evidence import DemoResult, Effect, Effects, evaluate
from hascheduler.demo.scenario import DemoScenario, Kill, RunRecord
from hascheduler.simulate.report import percentile

OpenEnvironment = Callable[[str, Callable[[str], None]], AbstractAsyncContextManager[DemoEnvironment]]
"""Opens an environment: gets an id for this run, and a function that shows a line to the user."""
_AFTER_KILL_MS = 6_000
"""A job that its processor took along moves on after the heartbeat timeout of 5 s."""
_SHOWN_MAX = 10
_GOOD, _FAULTY, _UNDECIDED = 0, 1, 3
"""Exit statuses; 2 is the caller's fault everywhere."""


async def run_demo(console: Console, open_environment: OpenEnvironment, *, keep: bool, pause_s: float) -> int:
    """Run the scenario and print the report; with ``keep`` leave everything running until cancelled.

    Returns the exit status: 0 if nothing was lost or doubled, 1 if something was, 3 if pending jobs would tell.
    """
    latest, effects, record = LatestAnswers(), Effects(), RunRecord()
    view = Dashboard(console, latest, effects, record)
    async with open_environment(secrets.token_hex(3), view.say) as environment:
        effects.prefix = f"fire:{environment.prefix}"
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(poll_system(environment, effects, latest)),
                group.create_task(view.keep_showing(environment)),
            ]
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


def print_report(console: Console, record: RunRecord, effects: list[Effect]) -> int:
    """Print what was expected and what happened; the exit status, as of `run_demo`."""
    assert record.until_ms is not None, "the scenario has ended"
    until_ms = record.until_ms
    verdict = evaluate(
        record.expectations,
        effects,
        record.jobs,
        until_ms=until_ms,
        killed=record.killed_processors,
        cut=record.cut_outputs,
    )
    due = [effect for effect in effects if effect.nominal_ms is None or effect.nominal_ms <= until_ms]
    _print_account(console, verdict)
    _print_lags(console, record, due)
    _print_kills(console, record, due)
    if record.shards:
        _print_shards(console, record, due)
    for what in ("missed", "pending", "doubled", "unexpected"):
        jobs: list[str] = getattr(verdict, what)
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


def _print_account(console: Console, verdict: DemoResult) -> None:
    table = Table(title="Nominal times", title_justify="left")
    for column in ("expected", "fired", "pending", "missed", "doubled", "unexpected", "run again"):
        table.add_column(column, justify="right")
    faults = (len(verdict.missed), len(verdict.doubled), len(verdict.unexpected))
    table.add_row(
        str(verdict.expected),
        str(verdict.fired),
        f"[yellow]{len(verdict.pending)}" if verdict.pending else "0",
        *(f"[{'red' if count else 'green'}]{count}" for count in faults),
        str(len(verdict.rerun)),
    )
    console.print(table)


def _print_lags(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    table = Table(title="Lag from nominal time to handler start, ms", title_justify="left")
    for column in ("", "effects", "p50", "p99", "worst"):
        table.add_column(column, justify="right" if column else "left")
    shaken = [effect for effect in effects if any(_near(effect, kill) for kill in record.kills)]
    quiet = [effect for effect in effects if not any(_near(effect, kill) for kill in record.kills)]
    for name, part in (("quiet", quiet), ("until 6 s after a kill", shaken), ("all", effects)):
        lags = [effect.lag_ms for effect in part]
        figures = (len(part), percentile(lags, 50), percentile(lags, 99), max(lags, default=0))
        table.add_row(name, *(str(figure) for figure in figures))
    console.print(table)


def _print_kills(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    table = Table(title="Kills", title_justify="left")
    table.add_column("what")
    table.add_column("next term decides", justify="right")
    table.add_column("worst lag after it", justify="right")
    for kill in record.kills:
        took = "–" if kill.takeover_ms is None else f"after {kill.takeover_ms} ms"
        worst = max((effect.lag_ms for effect in effects if _near(effect, kill)), default=0)
        table.add_row(kill.what, took, f"{worst} ms")
    console.print(table)


def _print_shards(console: Console, record: RunRecord, effects: list[Effect]) -> None:
    """What each kill was to each shard: it has a leader of its own, so most kills are nothing to it."""
    table = Table(title="Failovers by shard", title_justify="left")
    table.add_column("shard")
    table.add_column("what")
    table.add_column("next term decides", justify="right")
    table.add_column("worst lag after it", justify="right")
    for shard in record.shards:
        its = [effect for effect in effects if record.shard_of.get(effect.schedule) == shard]
        for kill in record.kills:
            if kill.takeover_ms is None:
                continue
            took_ms = kill.of_shards.get(shard)
            took = "not led by it" if took_ms is None else f"after {took_ms} ms"
            worst = max((effect.lag_ms for effect in its if _near(effect, kill)), default=0)
            table.add_row(shard, kill.what, took, f"{worst} ms")
    console.print(table)


def _near(effect: Effect, kill: Kill) -> bool:
    return kill.at_ms <= effect.at_ms <= kill.over_ms + _AFTER_KILL_MS
