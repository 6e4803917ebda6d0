"""The command ``hascheduler shards``: which shard has how many partitions of tenants, and moves of them at run time."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from rich.console import Console, RenderableType
from rich.table import Table

from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, Options, option, text_option, with_options
from hascheduler.cli.output.answers import Shown, prints
from hascheduler.cli.output.console import progress_bar
from hascheduler.cli.setting_options import with_settings
from hascheduler.errors import InvalidInput, WorldError
from hascheduler.settings import Settings
from hascheduler.shards.layout import Layout, even_moves, moves_to, partition_counts

_SETTINGS = (
    "mongodb_uri", "database", "shard", "shards", "mongodb_tls_ca_file", "mongodb_tls_cert_file", "startup_patience_ms",
    "log_format", "log_level",
)  # fmt: skip
_POLL_S = 0.3

_WHICH: Options = {
    "even": Annotated[bool | None, option("--even", "Spread partitions evenly over all shards, with the fewest moves")],
    "tenants": text_option("--tenant NAME", "Partition of this tenant; repeatable", many=True),
    "partitions": Annotated[list[int] | None, option("--partition N", "Partition, 0 to 255; repeatable")],
    "to": text_option("--to SHARD", "Shard to move them to"),
}
NoWait = Annotated[bool, option("--no-wait", "Start the moves and return; they continue in the background")]


@example("hascheduler shards plan --even", "hascheduler shards plan --tenant acme --to 0002")
@prints()
@partial(with_settings, names=_SETTINGS)
@with_options("which", _WHICH)
def plan(*, which: Given, settings: Settings) -> Shown:
    """Show how many partitions each shard has and what would move. It changes nothing.

    A tenant is in one of 256 partitions, by a hash of its name, and a partition is in one shard. Without options, show
    the current layout and the moves under way.
    """
    layout = _layout(settings)
    return shown(layout, _moves(layout, **which))


@example("hascheduler shards apply --even", "hascheduler shards apply --tenant acme --to 0002 --no-wait")
@prints()
@partial(with_settings, names=_SETTINGS)
@with_options("which", _WHICH)
def apply(*, no_wait: NoWait = False, which: Given, settings: Settings) -> Shown:
    """Move partitions to other shards, and wait until they have moved.

    A partition is copied while its jobs run. Then it pauses for about two seconds: none of its jobs start, and writes
    for its tenants are answered 503 with Retry-After. Ctrl-C ends the command, and the moves continue. Status 1: the
    command ended before the moves did.
    """
    from hascheduler import assembly  # imports every driver, so only if the command runs

    if not {"even", "tenants", "partitions"} & which.keys():
        expected = "--even, or --tenant or --partition with --to"
        raise InvalidInput(("--even",), "no partitions to move are given", expected)
    layout = _layout(settings)
    moves = _moves(layout, **which)
    if moves:
        layout = asyncio.run(assembly.begin_moves(settings, layout, moves))
    if not no_wait and (layout.moving or layout.leaving):
        layout = _followed(settings, layout)
    return shown(layout, {})


def _layout(settings: Settings) -> Layout:
    from hascheduler import assembly

    layout = asyncio.run(assembly.layout(settings))
    if layout is None:
        raise InvalidInput(("HASCHEDULER_SHARDS",), "the deployment has one shard", "several, set on its replicas")
    return layout


def _moves(
    layout: Layout, *, even: bool = False, tenants: Sequence[str] = (), partitions: Sequence[int] = (), to: str = ""
) -> Mapping[int, int]:
    if even:
        if tenants or partitions or to:
            raise InvalidInput(("--even",), "excludes --tenant, --partition and --to", "one or the other")
        return even_moves(layout)
    if (tenants or partitions) and not to:
        raise InvalidInput(("--to",), "is missing", f"one of {', '.join(layout.shards)}")
    if to and not (tenants or partitions):
        raise InvalidInput(("--to",), "no partitions to move are given", "--tenant or --partition with it")
    return moves_to(layout, to, tenants, partitions) if to else {}


def _followed(settings: Settings, layout: Layout) -> Layout:
    from hascheduler import assembly

    begun = {*layout.moving, *layout.leaving}
    with progress_bar(Console(stderr=True)) as progress:
        bar = progress.add_task("partitions", total=len(begun))

        def seen(now: Layout) -> bool:
            left = [partition for partition in begun if not now.is_at_rest(partition)]
            progress.update(bar, completed=len(begun) - len(left))
            return not left

        try:
            return asyncio.run(assembly.follow_layout(settings, seen, _POLL_S)) or layout
        except KeyboardInterrupt:
            raise WorldError("interrupted; the moves continue, see hascheduler shards plan") from None


def shown(layout: Layout, moves: Mapping[int, int]) -> Shown:
    now = [layout.shard_of.count(index) for index in range(len(layout.shards))]
    then = partition_counts(layout, moves)
    table = Table("shard", "partitions", "then")
    for name, before, after in zip(layout.shards, now, then, strict=True):
        table.add_row(name, str(before), str(after))
    parts: list[RenderableType] = [table]
    sentences = (
        ("moves now", "move now", layout.moving),
        ("has moved; its finished jobs follow", "have moved; their finished jobs follow", layout.leaving),
        ("would move", "would move", moves),
    )
    for one, several, some in sentences:
        if some:
            what = f"1 partition {one}" if len(some) == 1 else f"{len(some)} partitions {several}"
            parts.append(what)
    return Shown(_document(layout, moves, now, then), parts)


def _document(layout: Layout, moves: Mapping[int, int], now: Sequence[int], then: Sequence[int]) -> dict[str, Any]:
    names, moving, leaving = layout.shards, sorted(layout.moving.items()), sorted(layout.leaving.items())
    return {
        "epoch": layout.epoch,
        "shards": [
            {"name": name, "partitions": before, "then": after}
            for name, before, after in zip(names, now, then, strict=True)
        ],
        "moving": [{"partition": partition, "to": names[move.to]} for partition, move in moving],
        "leaving": [{"partition": partition, "from": names[source]} for partition, source in leaving],
        "would_move": [{"partition": partition, "to": names[to]} for partition, to in sorted(moves.items())],
    }
