"""What a job may cost: the goals of the work on CPU, each a ratio of what release 0.2.0 took on the same machine.

All of them stand here, and nowhere else. A figure in milliseconds is that ratio of what two machines measured, so it
is a range, and stands for machines like those; a claim is a ratio measured alternately in one session.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """At most ``ratio`` of what 0.2.0 took, which was from ``least`` to ``most``."""

    ratio: float
    least: float
    most: float
    unit: str

    @property
    def range(self) -> tuple[float, float]:
        return self.ratio * self.least, self.ratio * self.most

    def __str__(self) -> str:
        low, high = self.range
        shown = f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"
        return f"≤ {shown} {self.unit} ({self.ratio:g} of 0.2.0)"


BUDGETS = {
    "50 jobs/s": Budget(0.45, 19, 25, "ms"),
    "200 jobs/s": Budget(0.5, 7.6, 9.0, "ms"),
    "1,000 jobs/s in batches of 500": Budget(0.6, 1.5, 1.5, "ms"),
}
"""CPU of a job by load, what is spent at rest included: the benchmark's own labels."""
IDLE_PERCENT_MAX = 1.0
"""Of a core, for a replica with nothing to do."""
