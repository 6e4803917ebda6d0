"""A lane: a class of work with its weight. A job of an unknown lane is in one with the defaults."""

from dataclasses import dataclass

from hascheduler.model.policy import Criteria

DEFAULT_LANE = "default"
"""The lane of jobs that name none. It exists without being stored, too."""
PRIORITY_MAX = 10
PROMOTE_AFTER_MS_DEFAULT = 60_000
PROMOTE_AFTER_MS_MIN = 1_000
WEIGHT_MAX = 1_000_000


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane of twice the ``weight`` gets twice the dominant share where both have work.

    ``promote_after_ms`` is how long a job waits for each step of its aged priority: one value, or one for each
    priority from 0 to 10. ``criteria`` orders the lane's own jobs (None: as the deployment's policy does); it takes
    effect where that policy begins with ``lane``. ``owner`` decides nothing here: it is whose `hascheduler apply`
    wrote it.
    """

    name: str
    rev: int = 0
    weight: int = 1
    promote_after_ms: tuple[int, ...] = (PROMOTE_AFTER_MS_DEFAULT,)
    criteria: Criteria | None = None
    owner: str | None = None

    def promote_after(self, priority: int) -> int:
        """How long a job of that priority waits for each step, in ms."""
        return self.promote_after_ms[min(max(priority, 0), len(self.promote_after_ms) - 1)]
