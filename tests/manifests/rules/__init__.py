"""What must hold of the rendered objects: a rule is a function that yields a line for each thing that is wrong.

``ALL`` has every one; `tests.manifests.mutants` has for each at least one mistake that it finds.
"""

from collections.abc import Callable, Iterator

from tests.manifests.objects import Objects
from tests.manifests.rules import changes, commands, hosts, lifecycle, naming, network, pods, references, restricted

Rule = Callable[[Objects], Iterator[str]]

_ROOMS = (restricted, pods, references, commands, hosts, network, lifecycle, changes, naming)


def _is_rule(found: object) -> bool:
    return getattr(found, "__annotations__", None) == {"objects": Objects, "return": Iterator[str]}


ALL: tuple[Rule, ...] = tuple(found for room in _ROOMS for found in vars(room).values() if _is_rule(found))


def faults_in(objects: Objects) -> dict[str, list[str]]:
    """Return what is wrong, by the rule that says so."""
    found = {rule.__name__: list(rule(objects)) for rule in ALL}
    return {name: lines for name, lines in found.items() if lines}
