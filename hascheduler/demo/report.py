"""The verdict on one run of the demo, as tables and as an exit code."""

from rich.console import Console
from rich.table import Table

from hascheduler.demo.evidence import Effect, Verdict, judge, percentile
from hascheduler.demo.story import Told

_AROUND_KILL_MS = 6_000
"""A job that its processor took along moves on after the heartbeat timeout of 5 s."""
_SHOWN_MAX = 10


def report(console: Console, told: Told, effects: list[Effect]) -> bool:
    """Print what was expected and what happened; whether nothing was lost or doubled."""
    verdict = judge(told.expectations, effects, told.jobs, told.until_ms)
    _print_account(console, verdict)
    _print_lags(console, told, [effect for effect in effects if (effect.nominal_ms or 0) <= told.until_ms])
    _print_kills(console, told)
    for what, jobs in (("missed", verdict.missed), ("doubled", verdict.doubled)):
        for job_id in jobs[:_SHOWN_MAX]:
            console.print(f"[red]{what}[/red] {job_id}", highlight=False)
    if verdict.good:
        console.print("[bold green]Nothing missed, nothing doubled.[/bold green]")
    else:
        console.print("[bold red]Something was lost or doubled.[/bold red]")
    return verdict.good


def _print_account(console: Console, verdict: Verdict) -> None:
    table = Table(title="Nominal times", title_justify="left")
    for column in ("expected", "fired", "missed", "doubled", "run again after a processor died"):
        table.add_column(column, justify="right")
    table.add_row(
        str(verdict.expected),
        str(verdict.fired),
        f"[{'red' if verdict.missed else 'green'}]{len(verdict.missed)}",
        f"[{'red' if verdict.doubled else 'green'}]{len(verdict.doubled)}",
        str(len(verdict.rerun)),
    )
    console.print(table)


def _print_lags(console: Console, told: Told, effects: list[Effect]) -> None:
    table = Table(title="Lag from nominal time to handler start, ms", title_justify="left")
    for column in ("", "effects", "p50", "p99", "worst"):
        table.add_column(column, justify="right" if column else "left")
    shaken = [effect for effect in effects if _near_kill(effect, told)]
    quiet = [effect for effect in effects if not _near_kill(effect, told)]
    for name, part in (("quiet", quiet), ("within 6 s of a kill", shaken), ("all", effects)):
        lags = [effect.lag_ms for effect in part]
        figures = (len(part), percentile(lags, 50), percentile(lags, 99), max(lags, default=0))
        table.add_row(name, *(str(figure) for figure in figures))
    console.print(table)


def _print_kills(console: Console, told: Told) -> None:
    table = Table(title="Kills", title_justify="left")
    table.add_column("what")
    table.add_column("first decision of the next term", justify="right")
    for kill in told.kills:
        took = "(its jobs moved on)" if kill.takeover_ms is None else f"after {kill.takeover_ms} ms"
        table.add_row(kill.what, took)
    console.print(table)


def _near_kill(effect: Effect, told: Told) -> bool:
    return any(0 <= effect.at_ms - kill.at_ms <= _AROUND_KILL_MS for kill in told.kills)
