"""Who chooses what happens next: Hypothesis, or a seed."""

from collections.abc import Sequence
from random import Random
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    def among(self, choices: Sequence[T]) -> T: ...


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def among(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)
