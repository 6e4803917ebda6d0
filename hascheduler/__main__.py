"""Runs the command line for ``hascheduler`` and ``python -m hascheduler``, and reports whose fault a failure was.

Exit status: 2 the caller's, 1 the world's, 130 Ctrl-C. Each of those is at most one line on standard error.
"""

import sys

from hascheduler.cli.app import app
from hascheduler.cli.output.printable import one_printable_line
from hascheduler.errors import CallerError, HaschedulerError, WorldError
from hascheduler.gc_tuning import collect_seldom
from hascheduler.model.values.redaction import redacted


def main() -> None:
    collect_seldom()  # first: imports make many objects, all of which live
    try:
        app(prog_name="hascheduler")
    except KeyboardInterrupt:
        sys.exit(130)
    except (CallerError, WorldError) as error:
        _end_with(error)
    except BaseExceptionGroup as group:
        # A TaskGroup wraps its tasks' errors. Of several the first is enough, unless one is our fault.
        faults, rest = group.split((CallerError, WorldError))
        if rest is not None or faults is None:
            raise
        _end_with(_first(faults))


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


def _end_with(error: BaseException) -> None:
    assert isinstance(error, HaschedulerError)
    line = one_printable_line(redacted(str(error)))
    sys.stderr.write(f"hascheduler: {line}\n")
    sys.exit(2 if isinstance(error, CallerError) else 1)


if __name__ == "__main__":
    main()
