"""``python -m tests.chaos``: run the rows, print what each showed, write the report.

Exit 0: no promise was broken; a row that this machine can't run is named, with what is missing. 1: one was, or not a
single row could be run; of planted bugs, one was not noticed. 2: wrong usage.
"""

import argparse
import os
import sys
import time
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

from hascheduler.embedded.children import run_in_foreground
from tests.chaos.hosts import why_no_namespaces
from tests.chaos.mutants import PLANTED
from tests.chaos.report import markdown, summary
from tests.chaos.row import Databases, Row
from tests.chaos.rows import ROWS
from tests.chaos.stage import Servers, open_servers
from tests.chaos.story import Result, run_row
from tests.chaos.strings import why_no_faketime

REPORT = Path(".run/chaos-report.md")
_SHOWN_MAX = 5


def main() -> int:
    options = _options()
    if options.list:
        for row in ROWS.values():
            sys.stdout.write(f"{row.name:28} {'smoke  ' if row.smoke else '       '} {row.what}\n")
        return 0
    smoke = options.rows == "smoke" or options.short
    smoky = [row.name for row in ROWS.values() if row.smoke]
    names = {"all": list(ROWS), "smoke": smoky}.get(options.rows) or options.rows.split(",")
    bugs = list(PLANTED) if options.planted == "all" else [name for name in options.planted.split(",") if name]
    problem = _unknown("--rows", names, ROWS) or _unknown("--planted", bugs, PLANTED)
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    if bugs:
        return run_in_foreground(_run_planted(bugs, options.seed))
    rows = [ROWS[name].in_short() if smoke else ROWS[name] for name in names]
    return run_in_foreground(_run(rows, smoke=smoke, seed=options.seed))


def _unknown(option: str, names: Sequence[str], there: Collection[str]) -> str:
    """In one line what is none of them; empty if all are."""
    unknown = [repr(name) for name in names if name not in there]
    return f"{option}: unknown {', '.join(unknown)}; expected some of {', '.join(there)}" if unknown else ""


async def _run(rows: Sequence[Row], *, smoke: bool, seed: int) -> int:
    results = []
    async with open_servers() as servers:
        for row in rows:
            results.append(await _one(row, servers, smoke=smoke, seed=seed))
            _write(REPORT.name, markdown(results, seed=seed, smoke=smoke).encode())
    sys.stdout.write(f"\n{summary(results)}\n")
    for result in results:
        if result.skipped:
            sys.stdout.write(f"skipped: {result.row.name}, as {result.skipped}\n")
    sys.stdout.write(f"written: {REPORT}\n")
    return 1 if any(result.violations for result in results) or all(result.skipped for result in results) else 0


async def _run_planted(bugs: Sequence[str], seed: int) -> int:
    """Each under its row; one that leaves the row green is a hole in the suite."""
    unnoticed = 0
    began = time.monotonic()
    async with open_servers() as servers:
        for bug in bugs:
            row = ROWS[PLANTED[bug].row]
            result = await run_row(row, servers, servers.folder / bug, smoke=True, seed=seed, bug=bug, say=_say)
            red = [name for name in result.violations if name not in ("failed", "bounds")]
            unnoticed += not red
            shown = f"{row.name}: {', '.join(red)}" if red else f"NOT NOTICED {result.violations}"
            sys.stdout.write(f"{bug:36} {result.took_s:4.0f} s  {shown}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(bugs) - unnoticed} of {len(bugs)} noticed, {time.monotonic() - began:.0f} s\n")
    return 1 if unnoticed else 0


async def _one(row: Row, servers: Servers, *, smoke: bool, seed: int) -> Result:
    folder = servers.folder / row.name
    missing = _missing(row)
    if missing:
        _say(f"{row.name}: skipped, {missing}")
        return Result(row, skipped=missing)
    _say(f"{row.name}: {row.what}")
    result = await run_row(row, servers, folder, smoke=smoke, seed=seed, say=_say)
    for checker, found in result.violations.items():
        for text in found[:_SHOWN_MAX]:
            _say(f"{row.name}: {checker}: {text}")
        if len(found) > _SHOWN_MAX:
            _say(f"{row.name}: {checker}: … and {len(found) - _SHOWN_MAX} more")
    verdict = "green" if result.green else "RED"
    _say(
        f"{row.name}: {verdict}, {result.obligations} obligations, lost {result.lost}, doubled {result.doubled},"
        f" worst gap {result.worst_gap_s:.2f} s, {result.took_s:.0f} s"
    )
    if result.violations:
        _keep(folder, f"chaos/{row.name}")
        _say(f"{row.name}: its logs are in {REPORT.parent}/chaos/{row.name}")
    return result


def _missing(row: Row) -> str:
    """What it takes that is not here."""
    if row.hosts:
        return why_no_namespaces()
    if row.faketime:
        return why_no_faketime()
    if row.databases is Databases.SMALL_DISK and os.geteuid() != 0:
        return "a small disk needs root"
    return ""


def _keep(folder: Path, to: str) -> None:
    for log in [*folder.glob("logs/*.log"), *folder.glob("effects")]:
        _write(f"{to}/{log.name}", log.read_bytes())


def _write(name: str, content: bytes) -> None:
    file = REPORT.parent / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def _say(what: str) -> None:
    sys.stdout.write(f"{datetime.now().astimezone():%H:%M:%S}  {what}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Real processes in real trouble.")
    parser.add_argument("--list", action="store_true", help="say what rows there are")
    parser.add_argument("--rows", default="all", help="all, smoke (short ones), or names with commas")
    parser.add_argument("--short", action="store_true", help="the named rows as short as in smoke")
    parser.add_argument("--seed", type=int, default=1, help="of chance: when trouble comes, what is asked for")
    parser.add_argument("--planted", default="", help="plant these bugs (names with commas, or all): rows go red")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
