"""The processors that speak HTTP: which tokens may act for each, and how many may be registered.

These routes serve only processors that speak HTTP. A processor is used with tokens of the name with which it was
registered: names outlast secrets, so a secret can be changed without losing running jobs. To tokens of other names the
processor does not exist.

A registration takes memory in every replica, and its slots attract jobs. So limits apply to the registrations with
tokens of one name (`WorkTerms.processors_max`, and the slots and definitions of all of them), and to the processors
that speak HTTP in all. Processors that left without deregistering count until they are deleted, after ten minutes.
A registration here counts before the stream shows it. Several replicas may together exceed a limit by what they
register within the lag of their streams.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from hascheduler.api.http.problems import ProblemError
from hascheduler.api.middleware.auth import Caller
from hascheduler.errors import TooMany
from hascheduler.model.processor import ProcessorRef, is_polling
from hascheduler.model.values.error_texts import quoted
from hascheduler.ports import Clock, ClusterView

PROCESSORS_OF_TOKEN_MAX = 1_000


@dataclass(frozen=True, slots=True)
class WorkTerms:
    """The terms on which processors work over HTTP.

    A processor works for ``scheduler``, sends a heartbeat each interval, and stops its work if the heartbeats go
    unanswered until the deadline. ``processors_max`` may be registered with one token.
    """

    scheduler: str
    heartbeat_interval_ms: int
    heartbeat_deadline_ms: int
    processors_max: int = PROCESSORS_OF_TOKEN_MAX


IN_ALL_MAX = 10_000
SLOTS_OF_TOKEN_MAX = 100_000
DEFINITIONS_OF_TOKEN_MAX = 100_000
_AGAIN_S = 60
_UNSEEN_FOR_MS = 10_000


def not_registered(processor: str) -> ProblemError:
    """Return the 404 for a processor that has been deleted, or never existed."""
    detail = f"no processor {quoted(processor)} is registered; register again and use the new id"
    return ProblemError(HTTPStatus.NOT_FOUND, "not-registered", detail)


def require_own_processor(processor: str, caller: Caller, view: ClusterView) -> None:
    """Refuse with 404 unless the processor speaks HTTP and the caller may speak for it.

    A processor that the stream has not shown yet passes: it was registered a moment ago, and every write for it names
    its id anyway.
    """
    if not is_polling(processor):
        raise not_registered(processor)
    known = view.processor(processor)
    if known is None or known.registered_by is None or caller.id is None:
        return
    if known.registered_by != caller.name:
        raise not_registered(processor)


class WorkerRegistrations:
    """Owner of the registrations that this replica has written and its stream does not show yet."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._unseen: dict[str, tuple[int, ProcessorRef]] = {}

    def require_room(self, processor: ProcessorRef, terms: WorkTerms) -> None:
        """Count the processor from here on, or raise `TooMany` if a limit is reached."""
        known = [each for each in self._known() if is_polling(each.id)]
        if len(known) >= IN_ALL_MAX:
            raise TooMany(f"{len(known)} HTTP processors are registered, of at most {IN_ALL_MAX}", _AGAIN_S)
        own = [each for each in known if each.registered_by == processor.registered_by]
        who = "without a token" if processor.registered_by is None else f"as {quoted(processor.registered_by)}"
        slots = sum(each.slots for each in own) + processor.slots
        definitions = sum(len(each.definitions) for each in own) + len(processor.definitions)
        for count, most, what in (
            (len(own) + 1, terms.processors_max, "processors"),
            (slots, SLOTS_OF_TOKEN_MAX, "slots"),
            (definitions, DEFINITIONS_OF_TOKEN_MAX, "definitions of processors"),
        ):
            if count > most:
                raise TooMany(f"{count} {what} would be registered {who}, of at most {most}", _AGAIN_S)
        self._unseen[processor.id] = (self._clock.mono_ms(), processor)

    def not_new(self, processor: ProcessorRef) -> None:
        """Forget a registration that was not written after all."""
        self._unseen.pop(processor.id, None)

    def _known(self) -> Sequence[ProcessorRef]:
        too_old_ms = self._clock.mono_ms() - _UNSEEN_FOR_MS
        self._unseen = {
            id: (at_ms, processor)
            for id, (at_ms, processor) in self._unseen.items()
            if at_ms > too_old_ms and self._view.processor(id) is None
        }
        return [*self._view.processors(), *(processor for _, processor in self._unseen.values())]
