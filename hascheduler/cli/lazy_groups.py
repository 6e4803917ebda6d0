"""Groups of commands whose modules are loaded one by one: what one command needs must not slow the others down."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup
from typer.main import get_command

Command = TypeVar("Command", bound=Callable[..., None])

CommandTable = Mapping[str, str]
"""Each command by its name: ``module:attribute``, where the attribute is the command's function or a group."""


def lazy_group(table: CommandTable) -> type[TyperGroup]:
    """The class of a group that has the commands of ``table``, in that order."""

    class OnDemand(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(table)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _load(cmd_name, table[cmd_name]) if cmd_name in table else None

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            close = [] if args[0] in table or ctx.resilient_parsing else get_close_matches(args[0], table)
            if close:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(close)}?")
            return super().resolve_command(ctx, args)

    return OnDemand


def example(*lines: str) -> Callable[[Command], Command]:
    """Shows ``lines`` below the command's help, as they are."""

    def attach(command: Command) -> Command:
        command.__dict__["example"] = "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
        return command

    return attach


def _load(name: str, where: str) -> Any:
    module, _, attribute = where.partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        return get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, epilog=getattr(found, "example", None))(found)
    return get_command(alone)
