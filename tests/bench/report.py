"""What was measured last, for a README: a table in Markdown, and pictures beside it."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hascheduler.errors import InvalidInput
from tests.bench.report_rows import ROWS, Row
from tests.bench.results import Measured, Results, read_results

_HEAD = """\
<!-- Written by `python -m tests.bench report`; what is changed here by hand is lost with the next one. -->

Measured on {cores} cores ({cpu}, {memory_gb} GB) with everything on them: MongoDB {mongodb}, RabbitMQ {rabbitmq}, \
Python {python}, replicas, processors and load. Where there were several runs, medians, with the least and the \
largest; of what went wrong the worst run. Such a machine is two to three times slower at times, under long load above \
all: figures of one date, of one table or ratios can be compared.
"""

LEDGER_TEXT = """\
## What a job costs, by part

`python -m tests.bench cost --plot cost.png` prints the ledger of CPU, `--json` prints it for machines; `--loads \
50,200 --seconds 10` is short. It measures first at rest, then under each load; `1000/500` is 1,000 jobs a second, \
500 of them a request. How to read it:

- *By process*: the kernel's account, all processes of a kind together, divided by the jobs that started. Beside it \
context switches of all threads, and turns of the event loop as libuv counts them.
- *By part*: shares of that CPU, so they sum to it. The kernel interrupts a process after each 10 ms of CPU, and the \
interpreter writes the running stack. A sample belongs to the innermost frame whose module has a part in the table \
of `tests/bench/ledger/parts.py`. A part with *n* samples is known to about √*n* of them: a longer run tells more. \
Of MongoDB and RabbitMQ the parts are their threads, by name.
- *For whom libraries work*: the driver's own code is a part; here is which part called it.
- *At rest*: what the same part spends when there is nothing to do, at most what it spent under load. It is in the \
whole, and a row of its own.
- *Sampler*: what the sampling itself costs, in per cent of the process's CPU; it is in the figures. `--no-parts` \
measures without it.
- *MongoDB's commands*: the server's own count by name, of all clients.
"""


def write_report(folder: Path, results: Path, peers: Path, soak: Path, ledger: Path) -> list[Path]:
    """The files it has written to ``folder``. Of ``peers``, ``soak`` and ``ledger`` only if there are such files.

    `InvalidInput` where results are missing or not what they should be, or matplotlib is.
    """
    require_matplotlib("report")
    from tests.bench import report_pictures
    from tests.bench.ledger.picture import draw_ledger

    measured, others, samples, parts = read_results(results), _read(peers), _read(soak), _read(ledger)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "bench.md"
    pictures = {
        "bench-peers.png": report_pictures.draw_peers(others) if others else None,
        "bench-latency.png": report_pictures.draw_latency(measured.benches),
        "bench-cost.png": report_pictures.draw_cost(measured.benches.get("cost", {})),
        "bench-ledger.png": draw_ledger(parts) if parts else None,
        "bench-soak.png": report_pictures.draw_soak(samples) if samples else None,
    }
    written = [table]
    for name, figure in pictures.items():
        if figure is not None:
            figure.savefig(folder / name, dpi=report_pictures.DPI)
            written.append(folder / name)
    table.write_text(markdown(measured, others) + "".join(f"\n![]({path.name})\n" for path in written[1:]))
    return written


def require_matplotlib(what: str) -> None:
    """`InvalidInput` where it is not installed, which ``what`` needs."""
    if find_spec("matplotlib") is None:
        raise InvalidInput((what,), "matplotlib is not installed", "pip install 'hascheduler[plot]'")


def save_ledger(ledger: Mapping[str, Any], path: Path) -> None:
    """The picture alone; nothing where no load ran a job. `InvalidInput` where that is no name of a picture."""
    from tests.bench.ledger.picture import draw_ledger
    from tests.bench.report_pictures import DPI

    figure = draw_ledger(ledger)
    if figure is None:
        return
    try:
        figure.savefig(path, dpi=DPI)
    except (OSError, ValueError) as error:
        raise InvalidInput(("--plot",), f"{path}: {error}", "a file such as cost.png") from None


def markdown(results: Results, peers: Mapping[str, Any] | None) -> str:
    lines = [_HEAD.format(**results.machine), *_table(results)]
    if peers:
        lines += ["", *_peers(peers)]
    lines += ["", LEDGER_TEXT.rstrip()]
    return "\n".join(lines) + "\n"


def _table(results: Results) -> list[str]:
    lines = ["| what | figure | goal | date | command |", "|---|---|---|---|---|"]
    for row in ROWS:
        cases = results.benches.get(row.bench, {})
        for label in [row.case] if row.case else cases:
            if label in cases and label not in row.without:
                measured = cases[label]
                shown = f"{row.what.format(case=label)} | {_shown(row, label, measured)} | {row.goal}"
                lines.append(f"| {shown} | {measured.date} | `{measured.command}` |")
    return lines


def _shown(row: Row, label: str, measured: Measured) -> str:
    try:
        text = row.shown.format(**measured.figures)
    except KeyError as error:
        raise InvalidInput((row.bench, label), f"there is no {error}", "what `make bench` writes now") from None
    low, high = measured.spread.get(row.headline, (0, 0))
    return f"{text} ({low:,} to {high:,} in {measured.runs} runs)" if measured.runs > 1 and low != high else text


def _peers(peers: Mapping[str, Any]) -> list[str]:
    lines = [
        f"Beside others, in one run on {peers['date']} with Python {peers['machine']['python']}, `{peers['command']}`:",
        "",
        "| system | keeps | no-op jobs/s | 1,000 schedules × 1 s: not fired, lag p99 | one of two killed: all go on |",
        "|---|---|---|---|---|",
    ]
    for name, system in peers["systems"].items():
        title = f"{system.get('title', name)} | {system.get('keeps', '')}"
        if "not_run" in system:
            lines.append(f"| {title} | not run: {system['not_run']} | | |")
            continue
        fires, failover = system.get("fires", {}).get("1000", {}), system.get("failover", {})
        cells = [
            _amount(system.get("throughput_jobs_per_s")),
            f"{_amount(fires.get('not_fired_percent'))} %, {_amount(fires.get('lag_p99_ms'))} ms" if fires else "",
            f"{_amount(failover.get('resumed_last_ms'))} ms" if failover else "",
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def _amount(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def _read(path: Path) -> Any:
    """None where there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise InvalidInput((str(path),), f"no JSON: {error}", "what a benchmark wrote") from None
