"""Mistakes, one function each, in the words of who would make them; and by which rule each must be found.

A room for each of the rooms of `tests.manifests.rules`.
"""

from tests.manifests.mutants import changes, commands, hosts, lifecycle, naming, network, pods, references, restricted
from tests.manifests.mutants.places import Spoil
from tests.manifests.rules import Rule

_ROOMS = (restricted, pods, references, commands, hosts, network, lifecycle, changes, naming)

PLANTED: tuple[tuple[Rule, Spoil], ...] = tuple(planted for room in _ROOMS for planted in room.PLANTED)
