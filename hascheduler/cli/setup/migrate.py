"""The command ``hascheduler migrate``: brings the database to the schema of this release, and lists its steps."""

import asyncio
import sys
from functools import partial
from typing import Annotated

import typer

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DryRun, option
from hascheduler.cli.output.answers import Shown, prints
from hascheduler.cli.setting_options import with_settings
from hascheduler.model.schema_version import Migration, StepKind
from hascheduler.settings import Settings

_SETTINGS = (
    "mongodb_uri", "database", "shards", "shard_mongodb_uris", "mongodb_tls_ca_file", "mongodb_tls_cert_file",
    "startup_patience_ms", "log_format", "log_level",
)  # fmt: skip
_STEPS = {
    StepKind.COLLECTION: ("created", "create", "collection"),
    StepKind.INDEX: ("built", "build", "index"),
    StepKind.SUPERSEDED: ("dropped", "drop", "index"),
}
"""The action of each step, done and planned, and the kind of its object."""


@example("hascheduler migrate --dry-run", "hascheduler migrate --json")
@prints()
@partial(with_settings, names=_SETTINGS)
def migrate(
    *,
    dry_run: DryRun = False,
    complete: Annotated[
        bool,
        option(
            "--complete",
            "The exit status is 1 if indexes are kept for replicas of the older release: run it again later",
        ),
    ] = False,
    settings: Settings,
) -> Shown:
    """Create collections and indexes, and raise the schema version to this release's.

    Run it once all replicas and processors have this release: an older release that cannot read the new version cannot
    be used again. It can be run at any time, repeatedly and in parallel; the next run continues an interrupted one.
    """
    from hascheduler import assembly  # imports every driver, so only if the command runs

    done = asyncio.run(assembly.migrate(settings, dry_run=dry_run))
    if done is None:
        sys.stderr.write("hascheduler: interrupted; completed steps are kept, and the next run continues from there\n")
        raise typer.Exit(1)
    documents = [_document(migration, name, dry_run=dry_run) for name, migration in done.items()]
    lines = [line for name, migration in done.items() for line in _lines(migration, name, dry_run=dry_run)]
    unfinished = complete and not all(migration.is_complete for migration in done.values())
    return Shown(documents[0] if len(documents) == 1 else {"shards": documents}, [*lines], int(unfinished))


def _document(done: Migration, database: str, *, dry_run: bool) -> dict[str, object]:
    return {
        "database": database,
        "dry_run": dry_run,
        "schema_version": {"before": done.before, "after": done.after},
        "steps": [{"kind": step.kind.value, "name": step.name} for step in done.steps],
        "kept": [step.name for step in done.kept],
    }


def _lines(done: Migration, database: str, *, dry_run: bool) -> list[str]:
    made = [step for step in done.steps if step.kind is not StepKind.VERSION]
    words = ((*_STEPS[step.kind], step.name) for step in made)
    lines = [f"{f'would {verb}' if dry_run else past} the {what} {name}" for past, verb, what, name in words]
    if done.kept:
        names = ", ".join(step.name for step in done.kept)
        lines.append(f"kept the superseded indexes {names}, which are no longer needed: {done.kept_because}")
    before = "had no schema version" if done.before is None else f"had schema version {done.before}"
    if len(made) == len(done.steps):
        return [*lines, f"{database} has schema version {done.after}" + ("" if made else "; nothing was missing")]
    [to] = [step.name for step in done.steps if step.kind is StepKind.VERSION]
    return [*lines, f"{database} {before}, and {'would have' if dry_run else 'has now'} {to}"]
