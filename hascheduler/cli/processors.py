"""``hascheduler processor list``, ``drain`` and ``undrain``: which processors there are, and which get no new jobs."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import DEFAULT_URL, AsJson, Url
from hascheduler.cli.output.console import console, or_dash, print_answer, print_json
from hascheduler.cli.output.instants import instant_text, with_utc
from hascheduler.cli.output.tables import FittedTable, with_columns
from hascheduler.cli.replica import replica

ProcessorName = Annotated[str, typer.Argument(metavar="NAME", help="What it is called; in Kubernetes, its pod's name")]
_COLUMNS = ("processor", "runs", "occupied", "state", "since", "by", "because")


@example("hascheduler processor list", "hascheduler processor list --json")
@with_utc
@with_columns
def list_processors(url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """List the processors, and which are drained."""
    with replica(url) as scheduler:
        answer = scheduler.cluster.processor_list()
    print_answer(answer, _table, as_json=as_json)


@example('hascheduler processor drain resizer-0 --because "its node is being replaced"')
@with_utc
def drain(
    name: ProcessorName,
    because: Annotated[str | None, typer.Option("--because", metavar="TEXT", help="Why, for people.")] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Give the processors of a name no new jobs, until they are undrained.

    What they run goes on to its end; `hascheduler processor list` says when it has. A processor that starts again
    under that name is drained, too.
    """
    with replica(url) as scheduler:
        answer = scheduler.cluster.drain(name, because)
    _show(answer, as_json=as_json)


@example("hascheduler processor undrain resizer-0")
def undrain(name: ProcessorName, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Give the processors of a name jobs again."""
    with replica(url) as scheduler:
        answer = scheduler.cluster.undrain(name)
    _show(answer, as_json=as_json)


def processor_state(processor: Mapping[str, Any]) -> str:
    """``lost``, ``resting`` (it did not take up its last jobs), ``not consuming`` its queue, ``drained`` (nothing runs
    there any more), ``draining`` or ``live``."""
    if not processor["alive"]:
        return "lost"
    # A replica of an older release knows neither rests nor drains.
    if not processor["draining"]:
        return "resting" if processor.get("rest") else "live"
    if not processor.get("drained") and not processor.get("consuming", True):
        return "not consuming"
    return "drained" if processor.get("drained") and not processor["occupied"] else "draining"


def _table(answer: Mapping[str, Any]) -> RenderableType:
    if not answer["items"] and not answer.get("absent"):
        return Text("There are no processors.", style="dim")
    table = FittedTable("", *_COLUMNS, spare=("runs", "by", "since"), wraps=("because", "runs"))
    for one in answer["items"]:
        state = processor_state(one)
        style = {"live": "green", "lost": "red"}.get(state, "yellow")
        table.add_row(
            Text(one["name"]),
            Text(", ".join(one["definitions"])),
            f"{one['occupied']}/{one['slots']}",
            Text(state, style=style),
            *_of_drain(one.get("drained")),
        )
    for drain in answer.get("absent", ()):
        table.add_row(Text(drain["name"]), Text("–"), "–", Text("absent, drained", style="dim"), *_of_drain(drain))
    return table


def _of_drain(drain: Mapping[str, Any] | None) -> tuple[Text, Text, Text]:
    if drain is None:
        return Text("–"), Text("–"), Text("–")
    return Text(instant_text(drain["since"])), Text(drain["by"]), Text(or_dash(drain["because"]))


def _show(answer: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    drained = answer["drained"]
    if drained is None:
        line = f"{answer['name']} gets jobs"
    else:
        reason = "" if drained["because"] is None else f": {drained['because']}"
        line = f"{answer['name']} is drained since {instant_text(drained['since'])} by {drained['by']}{reason}"
    console().print(line, markup=False, soft_wrap=True)
