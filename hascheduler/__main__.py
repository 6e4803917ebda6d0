"""Runs the command line for ``hascheduler`` and ``python -m hascheduler``, and reports whose fault a failure was.

Exit status: 2 the caller's, 1 the world's, 130 Ctrl-C. Each of those is at most one line on standard error.
"""

import sys
from typing import Any

import typer

from hascheduler.cli.app import app
from hascheduler.cli.commands import COMMANDS, EXTRAS
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.errors import CallerError, HaschedulerError, WorldError
from hascheduler.gc_tuning import collect_seldom
from hascheduler.model.values.redaction import redacted

_UsageError: Any = typer.BadParameter.__base__
"""Click's class. Typer brings a click of its own, or uses the installed one, and exports this subclass alone."""


def main() -> None:
    collect_seldom()  # first: imports make many objects, all of which live
    try:
        status = app(prog_name="hascheduler", standalone_mode=False)
    except _UsageError as error:
        _end_with_usage(error)
    except typer.Abort:
        sys.stderr.write("hascheduler: aborted\n")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except (CallerError, WorldError) as error:
        _end_with(error)
    except ModuleNotFoundError as error:
        command = next((word for word in sys.argv[1:] if word in COMMANDS), "")
        extra = EXTRAS.get(command)
        if extra is None or (error.name or "").startswith("hascheduler"):
            raise
        install = f"pip install 'hascheduler[{extra}]'"
        _end_with(CallerError(f"{command} needs {error.name}, which is not installed: {install}"))
    except BaseExceptionGroup as group:
        # A TaskGroup wraps its tasks' errors. Of several the first is enough, unless one is our fault.
        faults, rest = group.split((CallerError, WorldError))
        if rest is not None or faults is None:
            raise
        _end_with(_first(faults))
    else:
        sys.exit(status if isinstance(status, int) else 0)


def _end_with_usage(error: Any) -> None:
    command = "hascheduler" if error.ctx is None else error.ctx.command_path
    message = error.format_message().removesuffix(".").replace(": Value error, ", ": ")
    if message.startswith("Usage: "):  # a group without its command
        sys.stderr.write(f"{message}\n")
    else:
        line = one_printable_line(redacted(message))
        see = " See" if line.endswith("?") else "; see"
        sys.stderr.write(f"{command}: {line[:1].lower()}{line[1:]}{see} {command} --help\n")
    sys.exit(2)


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _end_with(error: BaseException) -> None:
    assert isinstance(error, HaschedulerError)
    line = one_printable_line(redacted(str(error)))
    sys.stderr.write(f"hascheduler: {line}\n")
    sys.exit(2 if isinstance(error, CallerError) else 1)


if __name__ == "__main__":
    main()
