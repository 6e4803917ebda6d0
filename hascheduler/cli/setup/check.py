"""The command ``hascheduler check``: the broken invariants in the database, and what to do about each.

``hascheduler audit`` is its deprecated name.
"""

import asyncio
import inspect
from functools import partial
from typing import Any

import typer
from rich.console import Console, Group, RenderableType
from rich.text import Text

from hascheduler.check.finding import CheckReport, Finding, instant_or_ms
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import with_parameters
from hascheduler.cli.output.answers import Shown, prints
from hascheduler.cli.output.instants import with_instants_shown
from hascheduler.cli.setting_options import with_settings
from hascheduler.settings import Settings

_SETTINGS = (
    "mongodb_uri", "database", "mongodb_tls_ca_file", "mongodb_tls_cert_file", "shard", "shards", "shard_mongodb_uris",
    "lease_store",
    "job_retention_ms", "journal_retention_ms", "heartbeat_timeout_ms", "start_timeout_ms", "max_concurrency",
    "startup_patience_ms", "log_format", "log_level",
)  # fmt: skip


@example("hascheduler check", "hascheduler check -o json --database hascheduler")
@prints(watch_s=10)
@partial(with_settings, names=_SETTINGS)
def check(*, settings: Settings) -> Shown:
    """Check the whole database for broken invariants, such as stuck jobs or undecided times.

    It only reads, also on a live system, and checks again what may just be changing before it reports it. It repairs
    nothing: each finding says what to run or check. It needs the same settings as the replicas. Status 0: no problems
    found; 1: problems found; 2: wrong usage or no database. Who changed what: `hascheduler audit-log`.
    """
    from hascheduler import assembly  # imports every driver, so only if the command runs

    with Console(stderr=True).status("looking …") as status:
        report = asyncio.run(
            assembly.audit(settings, lambda section, done: status.update(f"{section}: {done:,} checked"))
        )
    if report is None:
        raise typer.Exit(1)
    return Shown(_document(report, settings.database), _picture(report, settings.database), int(bool(report.counts)))


def audit(**values: Any) -> None:
    typer.echo("hascheduler: `hascheduler audit` is deprecated; use `hascheduler check`", err=True)
    check(**values)


with_parameters(
    audit,
    inspect.signature(check).parameters.values(),
    "The old name of `hascheduler check`. Deprecated: it still works, with a warning on standard error.",
)


def _picture(report: CheckReport, database: str) -> RenderableType:
    return Group(*map(_block, report.findings), _summary(report, database))


def _block(finding: Finding) -> Text:
    text = Text()
    # As Text: such a document may hold markup.
    text.append(finding.kind.value, style="bold red").append(f"  {finding.document}")
    if finding.since_ms is not None:
        text.append(f"  since {with_instants_shown(instant_or_ms(finding.since_ms))}", style="dim")
    text.append(f"\n  {with_instants_shown(finding.what)}\n  → {finding.hint}\n")
    return text


def _summary(report: CheckReport, database: str) -> Text:
    looked_at = f"{sum(report.looked_at.values()):,} documents of {database} checked"
    text = Text()
    if report.counts:
        text.append(", ".join(f"{kind} {count}" for kind, count in report.counts.items()), style="bold red")
        shown = len(report.findings)
        if sum(report.counts.values()) > shown:
            text.append(f" ({shown} shown)")
    else:
        text.append("no problems found", style="green")
    text.append(f"; {looked_at}", style="dim")
    if not report.complete:
        text.append("; not everything was checked", style="yellow")
    return text


def _document(report: CheckReport, database: str) -> dict[str, object]:
    findings = [
        {
            **{name: getattr(one, name) for name in ("kind", "document", "what")},
            "since": None if one.since_ms is None else instant_or_ms(one.since_ms),
            "hint": one.hint,
        }
        for one in report.findings
    ]
    summary = {name: getattr(report, name) for name in ("complete", "looked_at", "counts")}
    return {"database": database, "at": instant_or_ms(report.at_ms), **summary, "findings": findings}
