"""``hascheduler forecast``: how many jobs are going to start when, as bars, and the peaks in words."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from hascheduler.cli.completion import complete_tenant
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url, Watch
from hascheduler.cli.output.console import console, print_json, refuse_json_with_watch, show_or_watch
from hascheduler.cli.output.instants import day_text, reader_zone, span_text, utc_datetime, with_utc
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.replica import replica
from hascheduler.model.values.durations import format_duration, parse_duration
from hascheduler.model.values.instants import parse_instant

Answer = Mapping[str, Any]

_ROWS_MAX = 48
_BUCKETS_MS = tuple(minutes * 60_000 for minutes in (5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440))
_BAR_MIN = 10
_BESIDE_BARS = 46
_LEGEND = "█ within the slots   ░ beyond them   │ all slots"


@example("hascheduler forecast --ahead 12h --bucket 15m")
@with_utc
@with_columns
def forecast(
    *,
    ahead: Annotated[str, typer.Option("--ahead", metavar="SPAN", help="How far to look, at most 7d.")] = "24h",
    bucket: Annotated[
        str | None,
        typer.Option("--bucket", metavar="SPAN", help="What each line stands for; default: as fits on a page."),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            "--tenant", metavar="NAME", help="Name its schedules, the others as others.", autocompletion=complete_tenant
        ),
    ] = None,
    lane: Annotated[
        str | None, typer.Option("--lane", metavar="NAME", help="Name the schedules whose jobs go there.")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
    watch: Watch = False,
) -> None:
    """Show how many jobs are going to start when, and where they will have to wait.

    By the times of the schedules, learned costs and the slots of now. Jobs that are not submitted yet, retries,
    quotas and rates are not in it.
    """
    refuse_json_with_watch(as_json=as_json, watch=watch)
    ahead_ms = parse_duration(ahead, ("--ahead",))
    bucket_ms = _bucket_ms(ahead_ms) if bucket is None else parse_duration(bucket, ("--bucket",))
    with replica(url) as scheduler:

        def ask() -> Answer:
            span, step = format_duration(ahead_ms), format_duration(bucket_ms)
            return scheduler.cluster.forecast(ahead=span, bucket=step, tenant=tenant, lane=lane)

        if as_json:
            print_json(ask())
        else:
            show_or_watch(lambda: picture(ask(), console().width), watch=watch)


def _bucket_ms(ahead_ms: int) -> int:
    return next((size for size in _BUCKETS_MS if ahead_ms <= size * _ROWS_MAX), _BUCKETS_MS[-1])


def picture(answer: Answer, width: int) -> RenderableType:
    parts: list[RenderableType] = [_heading(answer), ""]
    parts += _bars(answer, max(_BAR_MIN, width - _BESIDE_BARS))
    parts += ["", Text(_LEGEND, style="dim"), "", _peaks(answer["peaks"])]
    return Group(*parts)


def _heading(answer: Answer) -> Text:
    text = Text()
    fires = sum(bucket["fires"] for bucket in answer["buckets"])
    others = sum(bucket["other_fires"] for bucket in answer["buckets"])
    text.append(f"{fires:,} fires", style="bold")
    if others:
        text.append(f" and {others:,} of others")
    text.append(f" ahead, {answer['slots']:,} slots")
    text.append(f"   times of {reader_zone().key}", style="dim")
    if answer["paused"]:
        what = "The schedules are" if answer["paused"] == "schedules" else "Everything is"
        text.append(f"\n{what} paused: this is what would be if that were resumed now.", style="bold yellow")
    if answer["left_out"]:
        text.append(f"\n{answer['left_out']:,} schedules are left out: their times are not known.", style="yellow")
    if answer["spread"]:
        text.append(
            f"\nThe fires of {answer['spread']:,} schedules are spread evenly: there are too many.", style="dim"
        )
    return text


def _bars(answer: Answer, width: int) -> list[RenderableType]:
    """A line for each bucket; buckets in which nothing runs are passed over."""
    buckets: Sequence[Answer] = answer["buckets"]
    slots = answer["slots"]
    most = max([slots, *(bucket["slots_wanted"] for bucket in buckets), 1])
    lines: list[RenderableType] = [
        Text(f"{'':17}{'fires':>7}{'jobs':>9}  {'slots wanted':<{width}} {'wait':>9}", style="bold")
    ]
    idle = 0
    for bucket in buckets:
        if not (bucket["slots_wanted"] or bucket["jobs"] or bucket["fires"] + bucket["other_fires"]):
            idle += 1
            continue
        if idle:
            lines.append(Text("                ⋮", style="dim"))
            idle = 0
        lines.append(_line(bucket, slots, most, width))
    return lines if len(lines) > 1 else [Text("Nothing is going to start.", style="dim")]


def _line(bucket: Answer, slots: int, most: int, width: int) -> Text:
    wanted = bucket["slots_wanted"]
    within, beyond = _cells(min(wanted, slots), most, width), _cells(wanted, most, width)
    line = Text(f"{_when(bucket['at']):<17}", style="")
    line.append(f"{bucket['fires'] + bucket['other_fires']:>7,}{bucket['jobs']:>9,}  ")
    line.append("█" * within, style="green")
    line.append("░" * (beyond - within), style="red")
    end = _cells(slots, most, width)
    if beyond < end < width:
        line.append(" " * (end - beyond) + "│", style="dim")
        beyond = end + 1
    line.append(" " * (width - beyond))
    wait = span_text(bucket["wait_ms"]) if bucket["wait_ms"] else ""
    return line.append(f" {wait:>9}", style="red" if wait else "")


def _cells(slots: int, most: int, width: int) -> int:
    """At least one where there is anything."""
    return -(-slots * width // most)


def _when(instant: str) -> str:
    at = utc_datetime(parse_instant(instant)).astimezone(reader_zone())
    return f"{day_text(at).rpartition(' ')[0]} {at:%H:%M}"


def _peaks(peaks: Sequence[Answer]) -> RenderableType:
    if not peaks:
        return Text("No job will have to wait for longer than a minute.", style="green")
    table = FittedTable("", "when", "what", "schedules", "advice", spare=("advice",), wraps=("schedules", "advice"))
    for peak in peaks:
        names = ", ".join(
            f"{one['name']} × {one['jobs']:,}" if one["jobs"] > 1 else one["name"] for one in peak["schedules"]
        )
        if peak["other_jobs"]:
            names += f"{', ' if names else ''}{peak['other_jobs']:,} of others"
        table.add_row(Text(_when(peak["at"])), Text(peak["summary"], style="red"), Text(names), Text(peak["advice"]))
    return table
