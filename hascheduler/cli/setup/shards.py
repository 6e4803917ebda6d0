"""``hascheduler shards``: which shard has how many slots of tenants, and moves of slots while everything runs."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import AsJson
from hascheduler.cli.output.console import console, print_json
from hascheduler.cli.output.logs import configure_logging
from hascheduler.cli.setting_options import with_settings
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.settings import Settings
from hascheduler.shards.layout import Layout, even_moves, moves_to, partition_counts

_SETTINGS = (
    "mongodb_uri", "database", "shard", "shards", "mongodb_tls_ca_file", "mongodb_tls_cert_file", "startup_patience_ms",
    "log_format", "log_level",
)  # fmt: skip
_LOOK_S = 0.3

Even = Annotated[bool, typer.Option("--even", help="Until all shards have as many slots; the fewest moves.")]
Tenants = Annotated[list[str] | None, typer.Option("--tenant", help="The slot of this tenant; may be given again.")]
Slots = Annotated[list[int] | None, typer.Option("--slot", help="This slot, 0 to 255; may be given again.")]
To = Annotated[str, typer.Option("--to", help="The name of the shard that they go to.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Begin, and do not follow: it goes on by itself.")]


@example("hascheduler shards plan --even", "hascheduler shards plan --tenant acme --to 0002")
@partial(with_settings, names=_SETTINGS)
def plan(
    *,
    even: Even = False,
    tenant: Tenants = None,
    slot: Slots = None,
    to: To = "",
    as_json: AsJson = False,
    settings: Settings,
) -> None:
    """Show how many slots each shard has, and what would move. It changes nothing.

    A tenant is in one of 256 slots, by a hash of its name, and a slot is in one shard. Without options it shows what is
    there, and what moves now.
    """
    configure_logging(settings)
    routing = _routing(settings)
    _show(routing, _moves(routing, even=even, tenants=tenant or (), slots=slot or (), to=to), as_json=as_json)


@example("hascheduler shards apply --even", "hascheduler shards apply --tenant acme --to 0002 --no-wait")
@partial(with_settings, names=_SETTINGS)
def apply(
    *,
    even: Even = False,
    tenant: Tenants = None,
    slot: Slots = None,
    to: To = "",
    no_wait: NoWait = False,
    as_json: AsJson = False,
    settings: Settings,
) -> None:
    """Move slots to other shards while everything runs, and follow them until they are there.

    Nothing of a slot is started for a moment, until what runs has ended and its schedules are there; then it goes on
    there, and the rest follows. Until all of it is there, its tenants' submits are answered 503 with Retry-After.
    Ctrl-C leaves it going. Status 1: it was not there in the end.
    """
    from hascheduler import assembly  # every driver there is: only when it runs

    if not (even or tenant or slot):
        raise InvalidInput(("--even",), "nothing is to move", "--even, or --tenant or --slot with --to")
    configure_logging(settings)
    routing = _routing(settings)
    moves = _moves(routing, even=even, tenants=tenant or (), slots=slot or (), to=to)
    if moves:
        routing = asyncio.run(assembly.begin_moves(settings, routing, moves))
    if not no_wait and (routing.moving or routing.leaving):
        routing = _followed(settings, routing)
    _show(routing, {}, as_json=as_json)


def _routing(settings: Settings) -> Layout:
    from hascheduler import assembly

    routing = asyncio.run(assembly.layout(settings))
    if routing is None:
        raise InvalidInput(("HASCHEDULER_SHARDS",), "the deployment has one shard", "several, set for its replicas")
    return routing


def _moves(routing: Layout, *, even: bool, tenants: Sequence[str], slots: Sequence[int], to: str) -> Mapping[int, int]:
    if even:
        if tenants or slots or to:
            raise InvalidInput(("--even",), "stands beside --tenant, --slot or --to", "one or the other")
        return even_moves(routing)
    if (tenants or slots) and not to:
        raise InvalidInput(("--to",), "is missing", f"one of {', '.join(routing.shards)}")
    if to and not (tenants or slots):
        raise InvalidInput(("--to",), "nothing is to go there", "--tenant or --slot beside it")
    return moves_to(routing, to, tenants, slots) if to else {}


def _followed(settings: Settings, routing: Layout) -> Layout:
    from hascheduler import assembly

    begun = {*routing.moving, *routing.leaving}
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    shown = Console(stderr=True)
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as progress:
        bar = progress.add_task("slots", total=len(begun))

        def seen(now: Layout) -> bool:
            left = [slot for slot in begun if not now.is_at_rest(slot)]
            arrived = len(begun & set(now.leaving))
            what = f"slots ({arrived} open there, the rest follows)" if arrived else "slots"
            progress.update(bar, completed=len(begun) - len(left), description=what)
            return not left

        try:
            return asyncio.run(assembly.follow_layout(settings, seen, _LOOK_S)) or routing
        except KeyboardInterrupt:
            raise WorldError("left: what moves goes on moving, see hascheduler shards plan") from None


def _show(routing: Layout, moves: Mapping[int, int], *, as_json: bool) -> None:
    now, then = partition_counts(Layout(1, routing.shards, routing.shard_of)), partition_counts(routing, moves)
    if as_json:
        print_json(_document(routing, moves, now, then))
        return
    table = Table("shard", "slots", "then")
    for name, before, after in zip(routing.shards, now, then, strict=True):
        table.add_row(name, str(before), str(after))
    console().print(table)
    told = (
        ("moves now", "move now", routing.moving),
        ("is open there, the rest follows", "are open there, the rest follows", routing.leaving),
        ("would move", "would move", moves),
    )
    for one, several, some in told:
        if some:
            what = f"1 slot {one}" if len(some) == 1 else f"{len(some)} slots {several}"
            console().print(what, markup=False)


def _document(routing: Layout, moves: Mapping[int, int], now: Sequence[int], then: Sequence[int]) -> dict[str, Any]:
    return {
        "epoch": routing.epoch,
        "shards": [
            {"name": name, "slots": before, "then": after}
            for name, before, after in zip(routing.shards, now, then, strict=True)
        ],
        "moving": [{"slot": slot, "to": routing.shards[to]} for slot, (to, _) in sorted(routing.moving.items())],
        "leaving": [{"slot": slot, "from": routing.shards[source]} for slot, source in sorted(routing.leaving.items())],
        "would_move": [{"slot": slot, "to": routing.shards[to]} for slot, to in sorted(moves.items())],
    }
