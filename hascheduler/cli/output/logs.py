"""Log lines on standard error: readable on a terminal, JSON elsewhere. Secrets are redacted from every line.

Standard output belongs to the commands' results and to handlers.
"""

import io
import json
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO

import orjson

from hascheduler.cli.output.plain_structlog import structlog
from hascheduler.cli.output.printable import printable
from hascheduler.model.values.redaction import redacted, redacted_value
from hascheduler.settings import Settings
from hascheduler.telemetry.log_lines import add_process, add_span

_QUIET = {
    # These log errors that are answered or retried here, and information of no interest.
    "uvicorn.error": logging.ERROR,
    "aio_pika": logging.CRITICAL,
    "aiormq": logging.CRITICAL,
    "pymongo": logging.CRITICAL,
    # Our exporter logs once what is lost on the way to a collector.
    "opentelemetry": logging.CRITICAL,
}


_PLAIN = frozenset({"debug", "info"})


def configure_logging(settings: Settings, modules: Sequence[str] = ()) -> None:
    """Configure logging once, at start.

    Lines of libraries take the same form and are dropped below warnings. The packages of ``modules``, which have the
    handlers, are no libraries.
    """
    logging.captureWarnings(True)
    # No line shows them, and they are a third of a record's cost.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    as_json = settings.log_format == "json" or (settings.log_format == "auto" and not sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        add_process,
        add_span,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if as_json:
        shared.append(structlog.processors.format_exc_info)
    renderer: Any = (
        structlog.processors.JSONRenderer(_json)
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_traceback)
    )
    rendering = [_redact, renderer] if as_json else [_redact, _make_printable, renderer]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
    for name in {"hascheduler", *(module.partition(":")[0].partition(".")[0] for module in modules)}:
        logging.getLogger(name).setLevel(level)
    for name, quiet in _QUIET.items():
        logging.getLogger(name).setLevel(quiet)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            _Output(handler, rendering),
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


class _Output:
    """A writer of our lines below warnings, where ``handler`` writes the others, without a `logging.LogRecord` each.

    Two records per line would cost more than the rest of the line. If another handler listens too, such as one that the
    module of a job has added, lines go the ordinary way.
    """

    def __init__(
        self, handler: "logging.StreamHandler[TextIO]", rendering: Sequence[structlog.typing.Processor]
    ) -> None:
        self._handler = handler
        self._rendering = rendering

    def __call__(
        self, logger: logging.Logger, method: str, event: structlog.typing.EventDict
    ) -> tuple[tuple[structlog.typing.EventDict], dict[str, dict[str, Any]]]:
        if method not in _PLAIN or "positional_args" in event or not self._is_alone(logger):
            return structlog.stdlib.ProcessorFormatter.wrap_for_formatter(logger, method, event)
        line: Any = event
        for render in self._rendering:
            line = render(logger, method, line)
        assert self._handler.lock is not None
        # The lock keeps lines of different threads apart, and a closed standard error is ignored.
        with suppress(OSError, ValueError), self._handler.lock:
            self._handler.stream.write(line + self._handler.terminator)
            self._handler.flush()
        raise structlog.DropEvent  # the line is already written

    def _is_alone(self, logger: logging.Logger) -> bool:
        at: logging.Logger | None = logger
        while at is not None and at.parent is not None:
            if at.handlers or at.filters or not at.propagate:
                return False
            at = at.parent
        return at is not None and at.handlers == [self._handler]


def _json(event: structlog.typing.EventDict, **_: Any) -> str:
    """Return the line in ASCII: a terminal would obey some of the other characters."""
    try:
        line = orjson.dumps(event, str, orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:  # integers of more than 64 bits, half a surrogate pair, keys that are not texts
        line = b"\xff"
    return line.decode() if line.isascii() else json.dumps(event, default=str)


def _redact(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return {name: value if name == "exc_info" else redacted_value(value) for name, value in event.items()}


def _make_printable(_logger: object, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape texts that a terminal would obey, as in an error or a name; lists and objects are quoted in any case."""
    return {name: printable(value) if isinstance(value, str) else value for name, value in event.items()}


def _traceback(out: TextIO, error: structlog.typing.ExcInfo) -> None:
    """Write a plain traceback: a pretty one shows local variables, and splits secrets so that no rule matches them."""
    text = io.StringIO()
    structlog.dev.plain_traceback(text, error)
    out.write(printable(redacted(text.getvalue())))
