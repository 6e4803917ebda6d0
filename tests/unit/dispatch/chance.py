"""Who chooses what happens next: Hypothesis, or a seed."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Chance(Protocol):
    def among(self, choices: Sequence[T]) -> T: ...
