"""A definition: a named type of job and its limits. A job of an unknown definition has the defaults."""

from dataclasses import dataclass

ATTEMPTS_MAX_DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Definition:
    """``max_concurrency`` caps its dispatched and running jobs (None: no cap); ``attempts_max`` counts lost ones."""

    name: str
    rev: int = 0
    max_concurrency: int | None = None
    attempts_max: int = ATTEMPTS_MAX_DEFAULT
