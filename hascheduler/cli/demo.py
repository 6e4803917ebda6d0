"""``hascheduler demo``: the whole system, its leader killed again and again, and a report."""

from pathlib import Path
from typing import Annotated

import typer

from hascheduler.cli.dev import Transport


def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running after the report, until Ctrl-C.")
    ] = False,
    transport: Annotated[
        Transport | None, typer.Option(help="How jobs reach processors; RabbitMQ where it is installed.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the processes' logs go.")] = Path(".run/demo"),
) -> None:
    """Start three replicas and two processors, kill the leader twice and a processor once, and report.

    Takes about a minute. Exits with 1 if a nominal time was missed or an effect was doubled.
    """
    from rich.console import Console

    from hascheduler.demo.run import run_demo
    from hascheduler.embedded.foreground import run_in_foreground

    chosen = None if transport is None else transport.value
    good = run_in_foreground(run_demo(Console(highlight=False), folder, keep=keep, transport=chosen))
    raise typer.Exit(0 if good else 1)
