"""The commands ``hascheduler simulate`` and ``record``.

``simulate`` runs a scenario on the real dispatch core in virtual time, or decides a recording again; its figures are a
table with a column for each policy. ``record`` makes such a recording: the leader's inputs and decisions.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hascheduler.cli import environment
from hascheduler.cli.completion import one_of
from hascheduler.cli.input.values import read_source
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import InContext, Url, argument, option
from hascheduler.cli.output.answers import Shown, prints
from hascheduler.cli.output.console import new_table, progress_bar
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.replica import replica
from hascheduler.client.answers import ClusterResponse
from hascheduler.dispatch.decisions import encode_decisions
from hascheduler.dispatch.recording import is_recording, read_recording
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.model.policy import PRESETS, policy_name
from hascheduler.model.values.instants import format_duration, format_instant, parse_duration
from hascheduler.simulate.examples import example_names, example_note, example_text
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.recorded import recorded_scenario, replay
from hascheduler.simulate.report import RunReport, report, start_shifts
from hascheduler.simulate.run import RunOutcome, as_document, run
from hascheduler.simulate.scenario import Scenario

_ROWS_MAX = 20
"""The most rows of one kind: the groups that waited longest."""


def comparison(outcomes: Sequence[RunOutcome]) -> Table:
    reports = [report(outcome) for outcome in outcomes]
    table = new_table("", *(each.policy for each in reports))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, *figures in _rows(reports):
        table.add_row(Text(name), *figures)
    return table


def _rows(reports: Sequence[RunReport]) -> Iterator[list[str]]:
    counts = ("jobs", "completed", "pending", "expired", "gave_up", "lost", "unschedulable")
    for name in counts:
        found = [getattr(each, name) for each in reports]
        numbers = [len(each) if isinstance(each, tuple) else each for each in found]
        if name in counts[:3] or any(numbers):
            label = {"pending": "still waiting", "gave_up": "gave up", "lost": "attempts lost"}.get(name, name)
            yield [label, *(f"{number:,}" for number in numbers)]
    yield ["per hour", *(f"{float(each.per_hour):,.{0 if each.per_hour >= 100 else 1}f}" for each in reports)]
    yield ["slots used", *(f"{float(each.utilisation):.0%}" for each in reports)]
    waits = {"mean": "mean_ms", "median": "p50_ms", "95 %": "p95_ms", "longest": "longest_ms"}
    for name, figure in waits.items():
        yield [f"wait, {name}", *(short_span_text(getattr(each.waits, figure)) for each in reports)]
    for kind, groups in reports[0].waits_by.items():
        names = sorted(groups, key=lambda name: groups[name].longest_ms, reverse=True)
        for name in names[:_ROWS_MAX] if len(names) > 1 else ():
            figures = [each.waits_by[kind].get(name) for each in reports]
            means = ["–" if each is None else short_span_text(each.mean_ms) for each in figures]
            yield [f"mean, {kind} {name or '(none)'}", *means]
        if len(names) > _ROWS_MAX:
            yield [f"{len(names) - _ROWS_MAX:,} more, which waited less"]
    for id in list(reports[0].used)[:_ROWS_MAX]:
        yield [f"used of {id}", *(f"{float(each.used[id]):.0%}" for each in reports)]


def difference_lines(outcomes: Sequence[RunOutcome]) -> Iterator[Text]:
    """Yield the jobs that no processor could run, and those whose start a policy moves compared with the first one."""
    if ids := outcomes[0].unschedulable:
        more = f" and {len(ids) - 5:,} more" if len(ids) > 5 else ""
        yield Text(f"no processor left at the end could run: {', '.join(ids[:5])}{more}", style="yellow")
    first = outcomes[0].scenario.policy.name
    for other in outcomes[1:]:
        shifts, in_one_only = start_shifts(outcomes[0], other)
        parts = []
        for how, sign in (("sooner", -1), ("later", 1)):
            moved = {id: sign * by_ms for id, by_ms in shifts.items() if sign * by_ms > 0}
            most = max(moved, key=moved.__getitem__, default=None)
            by = f" (most: {most}, by {short_span_text(moved[most])})" if most is not None else ""
            parts.append(f"{len(moved):,} jobs start {how}{by}")
        parts.append(f"{sum(not by_ms for by_ms in shifts.values()):,} at the same time")
        parts += [f"{in_one_only:,} in only one of the two runs"] if in_one_only else []
        yield Text.assemble((other.scenario.policy.name, "bold"), f": {', '.join(parts)}, than under {first}")


def short_span_text(span_ms: int) -> str:
    """Return the span with three digits below a minute, in whole seconds above."""
    return f"{span_ms / 1_000:.3g}s" if span_ms < 59_950 else format_duration((span_ms + 500) // 1_000 * 1_000)


_SHOWN_MAX = 5


_Example = option("--example NAME", "Built-in scenario instead of a file", one_of(example_names()))
_Policy = option(
    "--policy POLICY",
    "Policy instead of the file's: a preset (affinity, fair, swimlanes, balanced) or criteria separated by commas",
    one_of(PRESETS),
)
_Compare = option(
    "--compare POLICY", "Policy to compare with; several presets separated by commas, or repeatable", one_of(PRESETS)
)


@example(
    "hascheduler simulate --example mixed-day --plot day.png",
    "hascheduler simulate day.yaml --compare fair,affinity --compare lane,score",
    "hascheduler simulate afternoon.jsonl --policy swimlanes",
)
@prints()
def simulate(
    file: Annotated[str | None, argument("FILE", "Scenario in YAML or JSON, or a recording; -: standard input")] = None,
    *,
    example: Annotated[str | None, _Example] = None,
    list_examples: Annotated[bool, option("--list-examples", "List the built-in scenarios")] = False,
    policy: Annotated[str | None, _Policy] = None,
    compare: Annotated[list[str] | None, _Compare] = None,
    plot: Annotated[str | None, option("--plot OUT", "Draw a plot to OUT.png or OUT.svg")] = None,
) -> Shown:
    """Run a scenario on the real dispatch core in virtual time, and show the result.

    A recording (`hascheduler record`) is replayed and must give the same decisions. With --policy or --compare its jobs
    run under the recorded policy and under the others.
    """
    if list_examples:
        notes = {name: example_note(name) for name in example_names()}
        table = new_table("example", "description")
        for name, note in notes.items():
            table.add_row(Text(name, style="bold"), Text(note))
        return Shown(notes, table)
    if (file is None) == (example is None):
        problem = "missing" if file is None else "given together with --example"
        raise InvalidInput(("FILE",), problem, "a scenario file, - or --example NAME")
    text = example_text(example) if example else read_source(str(file), "YAML or JSON")
    with _located("standard input" if file == "-" else str(file or example)):
        recorded = is_recording(text)
        if recorded and not (policy or compare or plot):
            return _replayed(text)
        scenario = recorded_scenario(*read_recording(text.splitlines())) if recorded else parse_scenario(text)
    if recorded:
        # Another policy is useful only in comparison with the recorded one.
        compare, policy = [*([policy] if policy else []), *(compare or [])], None
    draw = None if plot is None else _drawing(plot)
    outcomes = _run_all(_under(scenario, policy, compare or []))
    if draw is not None and plot is not None:
        _write(plot, draw(outcomes))
    documents = {outcome.scenario.policy.name: as_document(outcome) for outcome in outcomes}
    head = [Text(scenario.note, style="italic")] if scenario.note else []
    picture = [*head, comparison(outcomes), *difference_lines(outcomes)]
    return Shown(documents if compare else as_document(outcomes[0]), picture)


@contextmanager
def _located(source: str) -> Iterator[None]:
    """Add the source and the place in it to errors inside the block."""
    try:
        yield
    except InvalidInput as error:
        where = (f"{source}, {error.path[0]}", *error.path[1:]) if error.path else (source,)
        raise InvalidInput(where, error.problem, error.expected) from None


def _under(scenario: Scenario, policy: str | None, compared: list[str]) -> list[Scenario]:
    """Return the scenario under ``policy``, if any, and under the compared ones, each once."""
    first = scenario if policy is None else scenario.under(policy, "--policy")
    found = {first.policy.name: first}
    for each in compared:
        names = [name.strip() for name in each.split(",")]
        for name in names if all(name in PRESETS for name in names) else [",".join(names)]:
            found.setdefault(name, scenario.under(name, "--compare"))
    return list(found.values())


def _run_all(scenarios: list[Scenario]) -> list[RunOutcome]:
    with progress_bar(Console(stderr=True)) as bar:

        def with_bar(scenario: Scenario) -> RunOutcome:
            task = bar.add_task(scenario.policy.name, total=len(scenario.jobs))
            return run(scenario, lambda done: bar.update(task, completed=done))

        return [with_bar(scenario) for scenario in scenarios]


def _drawing(out: str) -> Callable[[Sequence[RunOutcome]], bytes]:
    """Return the function that draws a file of that name; raise an `InvalidInput` if there is none.

    It is called before anything runs, so that a bad name costs no run.
    """
    try:
        from hascheduler.simulate.plot import FORMATS, draw
    except ModuleNotFoundError:
        raise InvalidInput(("--plot",), "matplotlib is not installed", "pip install 'hascheduler[plot]'") from None
    format = Path(out).suffix.removeprefix(".").lower()
    if format not in FORMATS:
        expected = " or ".join(f"NAME.{each}" for each in FORMATS)
        raise InvalidInput(("--plot",), f"{out[:64]!r} is not a plot format", expected)
    return lambda outcomes: draw(outcomes, format)


def _write(out: str, picture: bytes) -> None:
    try:
        Path(out).write_bytes(picture)
    except OSError as error:
        raise InvalidInput(("--plot",), f"{out}: {error.strerror}", "a writable file") from None


def _replayed(text: str) -> Shown:
    """Replay a recording; the status is 1 if the replay decides differently."""
    heading, steps = read_recording(text.splitlines())
    replayed = replay(heading, steps)
    counts = {"steps": replayed.steps, "decisions": replayed.decisions}
    recorded, again = replayed.difference or (None, None)
    sides = {} if recorded is None else {"recorded": recorded.decisions or (), "replayed": again or ()}
    rows = {side: encode_decisions(decisions) for side, decisions in sides.items()}
    at = "" if recorded is None else format_instant(recorded.now)
    difference = {"step": replayed.steps, "at": at, **rows} if rows else None
    document = {"replica": heading.replica, "term": heading.term, **counts, "end": replayed.end}
    since, policy = instant_text(format_instant(heading.at_ms)), policy_name(heading.config.policy.criteria)
    lines = [f"{heading.replica}, term {heading.term}, from {since} on; {policy}"]
    lines += [f"step {replayed.steps}, at {instant_text(at)}, differs"] if rows else []
    for side, decided in rows.items():
        few = "; ".join(" ".join(map(str, row[:4])) for row in decided[:_SHOWN_MAX]) or "nothing"
        lines.append(f"{side}  {few}{f'; and {len(decided) - _SHOWN_MAX} more' if decided[_SHOWN_MAX:] else ''}")
    same = f"in {replayed.steps} steps, all the same   ({replayed.end or 'it was cut off'})"
    lines.append(f"{replayed.decisions} decisions {'before it are the same' if rows else same}")
    answer = {**document, "identical": not rows, "difference": difference}
    return Shown(answer, Text("\n".join(lines)), int(bool(rows)))


@example("hascheduler record afternoon.jsonl --for 1m\nhascheduler simulate afternoon.jsonl")
def record(
    file: Annotated[Path, argument("FILE", "File to write; it must not exist")],
    span: Annotated[str, option("--for DURATION", "How long to record")] = "30s",
    url: Url = None,
    in_context: InContext = None,
) -> None:
    """Record the leader's inputs and decisions. Ctrl-C ends it early and keeps what was written."""
    span_ms = parse_duration(span, ("--for",))
    asked = environment.access(url, in_context)
    with replica(asked) as scheduler:
        leader = replace(asked, url=_leader(scheduler.cluster.status(), asked.url))
    steps, end = 0, "it was cut off"
    with replica(leader, "broke off") as scheduler:
        lines = scheduler.cluster.record(format_duration(span_ms))
        heading = next(lines)  # before the file, which a recording that is refused does not leave behind
        # On standard error, so that standard output holds only the command's result.
        with _new(file) as out, Console(stderr=True).status("recording") as status:
            try:
                for line in chain([heading], lines):
                    out.write(line + "\n")
                    read = json.loads(line)
                    end = read.get("end", end)
                    steps += "decisions" in read
                    status.update(f"{steps} steps")
            except KeyboardInterrupt:
                end = "ended by Ctrl-C"
    typer.echo(f"{steps} steps recorded in {file}: {end}")


def _leader(cluster: ClusterResponse, url: str) -> str:
    """Return the URL of the leader."""
    if cluster["leading"]:
        return url
    holder = cluster["leader"]["holder"] if cluster["leader"] else None
    for one in cluster["replicas"]:
        if one["id"] == holder:
            # All replicas use the same scheme as this one.
            return f"{url.partition('://')[0]}://{one['http_endpoint']}"
    raise WorldError("there is no leader at the moment, so there is nothing to record")


def _new(file: Path) -> TextIO:
    try:
        return file.open("x", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(("FILE",), f"{file}: {error.strerror}", "a new, writable file") from None
