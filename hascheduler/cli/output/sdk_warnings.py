"""What a replica took and warned of, on standard error beside the answer: a line each."""

import logging
import sys


class _OnStandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        from hascheduler.cli.output.printable import one_printable_line

        sys.stderr.write(f"warning: {one_printable_line(record.getMessage())}\n")


_HANDLER = _OnStandardError()


def show_warnings() -> None:
    """From now on; done twice it is done once."""
    log = logging.getLogger("hascheduler.client")
    log.propagate = False
    log.addHandler(_HANDLER)
