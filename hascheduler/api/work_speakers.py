"""Which processors speak HTTP, who may speak for each, and how many of them there may be.

Processors that do not speak HTTP do not exist for these routes. Only tokens by the name that registered a processor may
speak for it; for all other tokens it does not exist. Names outlast secrets, so a secret can be rotated without losing
running jobs.

A registration takes memory in every replica, and its slots attract jobs. So there are limits to what is registered with
tokens of one name (`WorkTerms.processors_max`, and the slots and definitions of all of them), and to how many
processors speak HTTP in all. Those that left without deregistering count until they are deleted, after ten minutes. A
registration counts at once at the replica that admitted it, before its stream shows it; several replicas may together
exceed a limit by what they admit meanwhile.
"""

from collections.abc import Iterable
from http import HTTPStatus

from hascheduler.api.access import Caller
from hascheduler.api.problems import Refusal
from hascheduler.api.work_terms import WorkTerms
from hascheduler.errors import TooMany
from hascheduler.model.processor import ProcessorRef, is_polling
from hascheduler.model.repr_limits import quoted
from hascheduler.ports import Clock, ClusterView

IN_ALL_MAX = 10_000
SLOTS_OF_TOKEN_MAX = 100_000
DEFINITIONS_OF_TOKEN_MAX = 100_000
_AGAIN_S = 60
_UNSEEN_FOR_MS = 10_000


def unknown(processor: str) -> Refusal:
    """404: the processor has been deleted, or never existed."""
    detail = f"no processor {quoted(processor)} is registered (any more); register again and take the new id"
    return Refusal(HTTPStatus.NOT_FOUND, "not-registered", detail)


def demand_own(processor: str, caller: Caller, view: ClusterView) -> None:
    """404 unless the processor speaks HTTP and the caller may speak for it.

    A processor that the stream has not shown yet passes: it was registered a moment ago, and every write for it names
    its id anyway.
    """
    if not is_polling(processor):
        raise unknown(processor)
    known = view.processor(processor)
    if known is None or known.registered_by is None or caller.id is None:
        return
    if known.registered_by != caller.name:
        raise unknown(processor)


class Registrations:
    """Owner of the registrations that this replica has written and its stream does not show yet."""

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._unseen: dict[str, tuple[int, ProcessorRef]] = {}

    def demand_room(self, processor: ProcessorRef, terms: WorkTerms) -> None:
        """`TooMany` if a limit is reached; otherwise the processor counts from here on."""
        known = [each for each in self._known() if is_polling(each.id)]
        if len(known) >= IN_ALL_MAX:
            raise TooMany(f"{len(known)} processors that speak HTTP are registered, and {IN_ALL_MAX} may", _AGAIN_S)
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
                raise TooMany(f"{count} {what} would be registered {who}, and {most} may", _AGAIN_S)
        self._unseen[processor.id] = (self._clock.mono_ms(), processor)

    def not_new(self, processor: ProcessorRef) -> None:
        """The registration was not written after all."""
        self._unseen.pop(processor.id, None)

    def _known(self) -> Iterable[ProcessorRef]:
        too_old_ms = self._clock.mono_ms() - _UNSEEN_FOR_MS
        for id, (at_ms, _) in list(self._unseen.items()):
            if at_ms <= too_old_ms or self._view.processor(id) is not None:
                del self._unseen[id]
        yield from self._view.processors()
        yield from (processor for _, processor in self._unseen.values())
