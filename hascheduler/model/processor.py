"""A processor: one worker process, as it registers itself."""

from collections.abc import Set
from dataclasses import dataclass

from hascheduler.model.resources import NO_RESOURCES, Resources

ANY_DEFINITION = "*"
POLLING_PREFIX = "http:"
"""What the ids of processors begin with that ask for their jobs over HTTP: no message is sent to them."""


def is_polling(processor_id: str) -> bool:
    return processor_id.startswith(POLLING_PREFIX)


def supports(definitions: Set[str], definition: str) -> bool:
    """Whether a processor with those ``definitions`` runs jobs of that one."""
    return ANY_DEFINITION in definitions or definition in definitions


@dataclass(frozen=True, slots=True)
class ProcessorRef:
    """``id`` is unique per process start. ``beat`` grows with every heartbeat: only its *change* means alive.

    ``definitions`` may hold ``"*"``: it takes jobs of every definition. A draining one gets no new jobs.
    ``resources`` are what its jobs share besides the slots.
    ``name`` and ``parked`` (messages it could not read) are for people. ``registered_by`` is the name of the token with
    which it registered over HTTP, and with which alone it is spoken for; None: it did not, or without a token.
    """

    id: str
    name: str
    shard: str
    definitions: frozenset[str]
    slots: int
    beat: int
    draining: bool
    parked: int
    resources: Resources = NO_RESOURCES
    registered_by: str | None = None

    @property
    def takes_any(self) -> bool:
        return ANY_DEFINITION in self.definitions

    def supports(self, definition: str) -> bool:
        return supports(self.definitions, definition)
