"""What was measured last, for a README: a table in Markdown, and pictures beside it."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hascheduler.errors import InvalidInput
from tests.bench.report_rows import ROWS, Row
from tests.bench.results import Measured, Results, read_results

_COMMAND = "python -m tests.bench "
_HEAD = """\
<!-- Written by `python -m tests.bench report`; what is changed here by hand is lost with the next one. -->

# Benchmarks

Measured on {cores} cores ({cpu}, {memory_gb} GB) that carry everything: MongoDB {mongodb}, RabbitMQ {rabbitmq}, \
Python {python}, replicas, processors and load. Figures of several runs are medians, with the smallest and the \
largest; failures are those of the worst run. Such a machine is two to three times slower at times: compare figures of \
one date, of one table, or ratios.

Commands are those after `python -m tests.bench`.
"""


def write_report(folder: Path, results: Path, peers: Path, soak: Path) -> list[Path]:
    """The files it has written to ``folder``. Of ``peers`` and ``soak`` only if there are such files.

    `InvalidInput` where results are missing or not what they should be, or matplotlib is.
    """
    if find_spec("matplotlib") is None:
        raise InvalidInput(("report",), "matplotlib is not installed", "pip install 'hascheduler[plot]'")
    from tests.bench import report_pictures

    measured, others, samples = read_results(results), _read(peers), _read(soak)
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "bench.md"
    pictures = {
        "bench-peers.png": report_pictures.draw_peers(others) if others else None,
        "bench-latency.png": report_pictures.draw_latency(measured.benches),
        "bench-cost.png": report_pictures.draw_cost(measured.benches.get("cost", {})),
        "bench-soak.png": report_pictures.draw_soak(samples) if samples else None,
    }
    written = [table]
    for name, figure in pictures.items():
        if figure is not None:
            figure.savefig(folder / name, dpi=report_pictures.DPI)
            written.append(folder / name)
    table.write_text(markdown(measured, others) + "".join(f"\n![]({path.name})\n" for path in written[1:]))
    return written


def markdown(results: Results, peers: Mapping[str, Any] | None) -> str:
    lines = [_HEAD.format(**results.machine), *_table(results)]
    if peers:
        lines += ["", *peers_table(peers)]
    return "\n".join(lines) + "\n"


def _table(results: Results) -> list[str]:
    lines = ["| what | figure | goal | date | command |", "|---|---|---|---|---|"]
    for row in ROWS:
        cases = results.benches.get(row.bench, {})
        for label in [row.case] if row.case else cases:
            if label in cases and label not in row.without:
                measured = cases[label]
                shown = f"{row.what.format(case=label)} | {_shown(row, label, measured)} | {row.goal}"
                lines.append(f"| {shown} | {measured.date} | `{measured.command.removeprefix(_COMMAND)}` |")
    return lines


def _shown(row: Row, label: str, measured: Measured) -> str:
    try:
        text = row.shown.format(**measured.figures)
    except KeyError as error:
        raise InvalidInput((row.bench, label), f"there is no {error}", "what `make bench` writes now") from None
    low, high = measured.spread.get(row.headline, (0, 0))
    return f"{text} ({low:,} to {high:,} in {measured.runs} runs)" if measured.runs > 1 and low != high else text


def peers_table(peers: Mapping[str, Any]) -> list[str]:
    """Return the lines about all systems that were measured in one run."""
    lines = [
        f"Beside other schedulers, in one run on {peers['date']} with Python {peers['machine']['python']},"
        f" `{peers['command']}`:",
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
