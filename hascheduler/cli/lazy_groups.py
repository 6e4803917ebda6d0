"""Groups of commands whose modules are imported one by one, so that no command pays for the others.

A group's list of commands is shown from its table, without an import; a command's module is imported when it runs, when
its options are completed, or for its own help.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from hascheduler.model.values.error_texts import near_names

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command that is imported when it is needed.

    ``where`` is ``module:attribute``, below `hascheduler.cli`, of the command's function; "" for a group that only
    holds ``commands``. ``summary`` is its line in the list of commands. A ``hidden`` command runs, and is in no list.

    If it has ``commands`` of its own and its first argument names one of them, that one runs.
    """

    where: str
    summary: str
    hidden: bool = False
    commands: "CommandTable" = field(default_factory=dict)


CommandTable = Mapping[str, LazyCommand]
"""The commands of a group by their names, in the order of its help."""


def lazy_group(table: CommandTable) -> type[TyperGroup]:
    """Return the class of a group with the commands of ``table``, in that order."""

    class OnDemand(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return [name for name, entry in table.items() if not entry.hidden]

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _load(cmd_name, table[cmd_name]) if cmd_name in table else None

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            near = [] if args[0] in table or ctx.resilient_parsing else near_names(args[0], table, 3)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?")
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """Write the list of commands like the base class, but from the table."""
            names = self.list_commands(ctx)
            limit = formatter.width - 6 - max(map(len, names))  # the width that the base class leaves for the text
            texts = [TyperCommand(name, help=table[name].summary).get_short_help_str(limit) for name in names]
            with formatter.section("Commands"):
                formatter.write_dl(list(zip(names, texts, strict=True)))

    return OnDemand


def lazy_command(table: CommandTable) -> type[TyperCommand]:
    """Return the class of a command that runs one of ``table`` if its first argument names it."""

    class OneOrItself(TyperCommand):
        def list_commands(self, ctx: Any) -> list[str]:
            return list(table)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            return _load(cmd_name, table[cmd_name]) if cmd_name in table else None

        def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
            if args and args[0] in table:
                return _load(args[0], table[args[0]]).make_context(f"{info_name} {args[0]}", args[1:], parent, **extra)
            return super().make_context(info_name, args, parent, **extra)

        def format_options(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, entry.summary) for name, entry in table.items()])
            super().format_options(ctx, formatter)

    return OneOrItself


def example(*lines: str) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that shows ``lines`` below the command's help, as they are."""

    def attach(command: CommandFunction) -> CommandFunction:
        command.__dict__["example"] = "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines)
        return command

    return attach


def _load(name: str, entry: LazyCommand) -> Any:
    if not entry.where:
        group = typer.Typer(
            cls=lazy_group(entry.commands), no_args_is_help=True, add_completion=False, rich_markup_mode=None
        )
        group.callback(help=entry.summary)(lambda: None)  # its commands do the work
        return get_command(group)
    module, _, attribute = entry.where.partition(":")
    found = attrgetter(attribute)(import_module(f"hascheduler.cli.{module}"))
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    cls = lazy_command(entry.commands) if entry.commands else None
    alone.command(name, cls=cls, epilog=getattr(found, "example", None))(found)
    return get_command(alone)
