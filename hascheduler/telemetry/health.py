"""Whether a process is alive, ready and leading: three separate questions.

=========  ======================================================================  ====================
question   no means                                                                who asks
=========  ======================================================================  ====================
alive      its loops have stalled: only a restart helps                            a supervisor
ready      not now: ask others, or give it no work; it may recover                 a load balancer
leading    another replica decides, which is normal                                people, and scripts
=========  ======================================================================  ====================

A process that waits for the database is alive and not ready; so is one that is about to stop. A stuck event loop does
not answer at all.
"""

from typing import Protocol

from hascheduler.ports import ClusterView

NOT_TURNING = "the loops have stalled"
WAITING_FOR_DATABASE = "waiting for MongoDB"
ABOUT_TO_END = "shutting down"
NOT_LEADING = "this replica does not lead"


class Health(Protocol):
    """Each answer is the reason why not; "" means yes."""

    def not_alive(self) -> str: ...

    def not_ready(self) -> str: ...

    def not_leading(self) -> str: ...


class ReplicaHealth:
    """`Health` of the replica behind ``view``."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view

    def not_alive(self) -> str:
        return "" if self._view.alive else NOT_TURNING

    def not_ready(self) -> str:
        return ABOUT_TO_END if self._view.stopping else self._view.unready_reason

    def not_leading(self) -> str:
        return "" if self._view.leading else NOT_LEADING


class Vitals:
    """`Health` of a whole process from its start: it waits for its database until `become` replaces that."""

    def __init__(self) -> None:
        self._of: Health | None = None

    def become(self, of: Health) -> None:
        self._of = of

    def not_alive(self) -> str:
        return "" if self._of is None else self._of.not_alive()

    def not_ready(self) -> str:
        return WAITING_FOR_DATABASE if self._of is None else self._of.not_ready()

    def not_leading(self) -> str:
        return NOT_LEADING if self._of is None else self._of.not_leading()
