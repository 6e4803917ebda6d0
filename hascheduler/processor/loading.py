"""Finds the handlers in modules that are named on a command line."""

import importlib
from collections.abc import Sequence

from hascheduler.errors import InvalidInput
from hascheduler.processor.handlers import Handlers


def load_handlers(modules: Sequence[str]) -> Handlers:
    """The ``handlers`` of all ``modules`` together; what is wrong with one of them is an `InvalidInput` of one line."""
    merged = Handlers()
    for module in modules:
        found = _handlers_of(module)
        try:
            merged.merge(found)
        except InvalidInput as error:
            raise InvalidInput((module,), error.problem, error.expected) from None
    if not merged.definitions:
        raise InvalidInput(("modules",), "no handler in them", "at least one module with a handler")
    return merged


def _handlers_of(module: str) -> Handlers:
    try:
        imported = importlib.import_module(module)
    except Exception as error:  # the module is anybody's code, and may fail in any way
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput((module,), f"can't be imported: {type(error).__name__}: {reason}") from None
    found = getattr(imported, "handlers", None)
    if not isinstance(found, Handlers):
        raise InvalidInput((module,), "has no `handlers`", "handlers = hascheduler.processor.Handlers()")
    return found
