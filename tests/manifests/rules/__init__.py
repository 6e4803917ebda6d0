"""What must hold of the rendered objects: a rule is a function that yields a line for each thing that is wrong.

``ALL`` has every one; `tests.manifests.mutants` has for each at least one mistake that it finds.
"""

from collections.abc import Callable, Iterable

from tests.manifests.objects import Objects
from tests.manifests.rules import changes, commands, hosts, lifecycle, naming, network, pods, references, restricted

Rule = Callable[[Objects], Iterable[str]]

_ROOMS = (restricted, pods, references, commands, hosts, network, lifecycle, changes, naming)

ALL: tuple[Rule, ...] = tuple(rule for room in _ROOMS for rule in room.RULES)
