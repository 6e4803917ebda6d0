"""The argument of a handler, and the registry of handlers, which is loaded from modules of a command line."""

import importlib
import inspect
import re
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
    asks `stop_requested` now and then, and raises whatever it likes. What it returns after its time is late: the
    attempt has failed. One that does not heed keeps its slot and the job's conflict groups until it has ended.
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
    """When the attempt is stopped, by this process' wall clock; None: never."""
    _cancel_requested: Callable[[], bool] = field(repr=False, compare=False)
    _stop_requested: Callable[[], bool] = field(repr=False, compare=False)
    _report: Callable[[float | None, str], None] = field(default=lambda percent, text: None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this job, and for no other job."""
        return self.id

    @property
    def fencing_token(self) -> int:
        """Grows with every attempt: a store that has seen a higher one refuses this one's writes."""
        return self.attempt

    def progress(self, percent: float | None = None, text: str = "") -> None:
        """Show how far this attempt has come: ``percent`` from 0 to 100 and a short text, or either.

        From a coroutine or a thread, as often as you like: the newest is stored about once a second. `InvalidInput` for
        what is no percentage.
        """
        self._report(percent, text)

    @property
    def cancel_requested(self) -> bool:
        """The cancellation of this job was requested. A result that is returned all the same stands."""
        return self._cancel_requested()

    @property
    def stop_requested(self) -> bool:
        """Stop now, whatever the reason: cancelled, out of time, revoked, draining, or out of touch with the leader."""
        return self._stop_requested()


Handler = Callable[[JobContext], Any]
"""Returns JSON or an awaitable of it."""


@dataclass(frozen=True, slots=True)
class ProcessHandler:
    """A handler whose attempts run in processes of their own, which find it by its module and its name there."""

    function: Handler
    module: str
    name: str

    def __call__(self, job: JobContext) -> Any:
        """In this process: for tests."""
        return self.function(job)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_F = TypeVar("_F", bound=Handler)


class Handlers:
    """A registry: filled while modules are imported, only read afterwards."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    def handler(self, definition: str, *, process: bool = False) -> Callable[[_F], _F]:
        """Register the decorated function for ``definition``; ``"*"`` is for all that have no handler of their own.

        A coroutine function runs in the handlers' event loop, a plain one in a thread of its own; with ``process`` each
        attempt of either runs in a new process, which is killed when it must stop. It imports the function, so that
        must stand by its name in a module: no lambda, no function in a function, nothing of ``__main__``. What does
        not, a name that no definition can have or that is taken, and what can't be called with one argument are an
        `InvalidInput`.
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
        """Add all of ``other``; a definition that both have is an `InvalidInput`."""
        for definition, function in other._handlers.items():
            self._add(definition, function)

    def _add(self, definition: str, function: Handler) -> None:
        if definition in self._handlers:
            raise InvalidInput(("definition",), f"{definition!r} has a handler already", "one handler a definition")
        try:
            called = function.function if isinstance(function, ProcessHandler) else function
            inspect.signature(called).bind(object())
        except (TypeError, ValueError):
            raise InvalidInput(
                ("handler",), f"the handler of {definition!r} can't be called", "a function of one argument, the job"
            ) from None
        self._handlers[definition] = function


def _of_process(definition: str, function: Handler) -> ProcessHandler:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or "<" in name:
        raise InvalidInput(
            ("handler",),
            f"the handler of {definition!r} can't be imported by a process of its own",
            "a function that stands by its name in a module other than __main__, no lambda or function in a function",
        )
    return ProcessHandler(function, module, name)


def _checked_name(definition: object) -> str:
    """Anything may come: the decorator is easily written without its parentheses, and then gets the function."""
    if isinstance(definition, str) and (definition == ANY_DEFINITION or _NAME.fullmatch(definition)):
        return definition
    raise InvalidInput(
        ("definition",),
        f"{str(definition)[:140]!r} is no name of a definition",
        "letters, digits, '.', '_' and '-', at most 128, or '*'",
    )


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
    except Exception as error:  # the module is the user's code, and may fail in any way
        reason = " ".join(str(error).split())[:200]
        raise InvalidInput((module,), f"can't be imported: {type(error).__name__}: {reason}") from None
    found = getattr(imported, "handlers", None)
    if not isinstance(found, Handlers):
        raise InvalidInput((module,), "has no `handlers`", "handlers = hascheduler.processor.Handlers()")
    return found
