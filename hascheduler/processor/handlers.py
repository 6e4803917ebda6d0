"""The argument of a handler, and the registry of handlers, which is loaded from modules of a command line."""

import importlib
import inspect
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hascheduler.errors import InvalidInput
from hascheduler.model.processor import ANY_DEFINITION
from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class JobContext:
    """One attempt of one job.

    A coroutine handler is stopped by a cancellation. A plain function runs in a thread, which can't be stopped: it
    should check `stop_requested` now and then, and raise. A result after the timeout is late: the attempt has failed. A
    function that does not stop keeps its slot and the job's conflict groups until it has ended.
    """

    id: str
    attempt: int
    definition: str
    target: str
    payload: Any
    tenant: str
    labels: Mapping[str, str]
    schedule: str | None
    nominal_ms: WallMs | None
    submitted_at_ms: WallMs
    deadline_ms: WallMs | None = field(default=None, kw_only=True)
    """When the attempt is stopped, by this process' wall clock; None means never."""
    _cancel_requested: Callable[[], bool] = field(repr=False, compare=False)
    _stop_requested: Callable[[], bool] = field(repr=False, compare=False)
    _report: Callable[[float | None, str], None] = field(default=lambda percent, text: None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """Return a key that is the same for every attempt of this job, and for no other job."""
        return self.id

    @property
    def fencing_token(self) -> int:
        """Return a number that grows with every attempt: a store should refuse writes with less than it has seen."""
        return self.attempt

    def progress(self, percent: float | None = None, text: str = "") -> None:
        """Show how far this attempt has come: ``percent`` from 0 to 100 and a short text, or either.

        Call it from a coroutine or a thread, as often as you like: the newest report is stored about once a second.
        Raise `InvalidInput` if ``percent`` is no percentage.
        """
        self._report(percent, text)

    @property
    def cancel_requested(self) -> bool:
        """Return True if the cancellation of this job was requested. A result that is returned all the same counts."""
        return self._cancel_requested()

    @property
    def stop_requested(self) -> bool:
        """Return True if the handler must stop: cancelled, timed out, revoked, draining, or cut off from the leader."""
        return self._stop_requested()


Handler = Callable[[JobContext], Any]
"""Returns JSON or an awaitable of it."""


@dataclass(frozen=True, slots=True)
class ProcessHandler:
    """A handler whose attempts run in processes of their own, which import it by its module and name."""

    function: Handler
    module: str
    name: str

    def __call__(self, job: JobContext) -> Any:
        """Call the handler in this process, for tests."""
        return self.function(job)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_F = TypeVar("_F", bound=Handler)


class Handlers:
    """A registry of handlers: filled while modules are imported, only read afterwards."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def handler(self, definition: str, *, process: bool = False) -> Callable[[_F], _F]:
        """Register the decorated function for ``definition``; ``"*"`` takes all that have no handler of their own.

        A coroutine function runs in the handlers' event loop, a plain one in a thread of its own. With ``process`` each
        attempt of either runs in a new process, which is killed when it must stop. That process imports the function,
        so it must be found by its name in a module: no lambda, no nested function, nothing in ``__main__``. Raise
        `InvalidInput` if that is not so, if the name is invalid or taken, or if the function can't be called with one
        argument.
        """
        name = _checked_name(definition)

        def register(function: _F) -> _F:
            self._add(name, _of_process(name, function) if process else function)
            return function

        return register

    @property
    def definitions(self) -> frozenset[str]:
        return frozenset(self._handlers)

    def find(self, definition: str) -> Handler | None:
        return self._handlers.get(definition) or self._handlers.get(ANY_DEFINITION)

    def merge(self, other: "Handlers") -> None:
        """Add all handlers of ``other``; raise `InvalidInput` if both have one for a definition."""
        for definition, function in other._handlers.items():
            self._add(definition, function)

    def _add(self, definition: str, function: Handler) -> None:
        if definition in self._handlers:
            raise InvalidInput(("definition",), f"{definition!r} already has a handler", "one handler per definition")
        try:
            called = function.function if isinstance(function, ProcessHandler) else function
            inspect.signature(called).bind(object())
        except (TypeError, ValueError):
            raise InvalidInput(
                ("handler",), f"the handler of {definition!r} can't be called with a job", "a function of one argument"
            ) from None
        self._handlers[definition] = function


def _of_process(definition: str, function: Handler) -> ProcessHandler:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "<" in name:
        raise InvalidInput(
            ("handler",),
            f"the handler of {definition!r} can't be imported by another process",
            "a named function of a module other than __main__, no lambda and no nested function",
        )
    return ProcessHandler(function, module, name)


def _checked_name(definition: object) -> str:
    """Return the name; it may be the function if the decorator was written without parentheses."""
    if isinstance(definition, str) and (definition == ANY_DEFINITION or _NAME.fullmatch(definition)):
        return definition
    raise InvalidInput(
        ("definition",),
        f"{str(definition)[:140]!r} is not a definition's name",
        "letters, digits, '.', '_' and '-', at most 128, or '*'",
    )


def load_handlers(modules: Sequence[str]) -> Handlers:
    """Return the handlers of all ``modules`` together, each ``module`` or ``module:name`` of its `Handlers`.

    Raise `InvalidInput` of one line if a module is wrong.
    """
    merged = Handlers()
    for module in modules:
        found = _handlers_of(module)
        try:
            merged.merge(found)
        except InvalidInput as error:
            raise InvalidInput((module,), error.problem, error.expected) from None
    if not merged.definitions:
        raise InvalidInput(("modules",), "they register no handler", "at least one module with a handler")
    return merged


_READY_MADE = ("command", "log", "sleep", "webhook")


def _place_of(error: Exception) -> str:
    """Return the file and line that raised it, with a colon; nothing if the module itself was not found."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: "
    ours = (__file__, importlib.__file__)
    places = [
        f"{each.filename}:{each.lineno}: "
        for each in traceback.extract_tb(error.__traceback__)
        if each.filename not in ours and not each.filename.startswith("<frozen ")
    ]
    return places[-1] if places else ""


def _handlers_of(where: str) -> Handlers:
    module, _, name = where.partition(":")
    attribute = name or "handlers"
    try:
        imported = importlib.import_module(module)
    except Exception as error:  # the module is the user's code, and may fail in any way
        reason = " ".join(str(error).split())[:200]
        old = module.removeprefix("processors.")  # where they were in 0.2.0
        if old in _READY_MADE and isinstance(error, ModuleNotFoundError) and error.name in (module, "processors"):
            raise InvalidInput((module,), "there is no such module", f"hascheduler.handlers.{old}") from None
        raise InvalidInput(
            (module,), f"can't be imported: {_place_of(error)}{type(error).__name__}: {reason}"
        ) from None
    found = getattr(imported, attribute, None)
    if not isinstance(found, Handlers):
        raise InvalidInput((module,), f"has no `{attribute}`", f"{attribute} = hascheduler.processor.Handlers()")
    return found
