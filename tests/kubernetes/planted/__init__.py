"""Mistakes, one function each, in the words of who would make them; and by which rule each must be found.

A room for each of the rooms of `tests.kubernetes.rules`.
"""

from tests.kubernetes.planted import changes, commands, lifecycle, naming, network, pods, references, restricted
from tests.kubernetes.planted.places import Spoil
from tests.kubernetes.rules import Rule

_ROOMS = (restricted, pods, references, commands, network, lifecycle, changes, naming)

PLANTED: tuple[tuple[Rule, Spoil], ...] = tuple(planted for room in _ROOMS for planted in room.PLANTED)
