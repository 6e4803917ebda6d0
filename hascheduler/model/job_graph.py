"""The graph of jobs that one fire of a schedule makes: in which order they are inserted, and which of them is last.

One job comes after all the others, directly or not. It stands for the whole graph: its id is that of the fire, it ends
when all of them have succeeded or one of them has not, and the verdict, the overlap and the count of failures are about
it.
"""

import re
from collections.abc import Sequence

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted

GRAPH_JOBS_MIN = 2
GRAPH_JOBS_MAX = 20
REF_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,31}$"
REF_EXPECTED = "1 to 32 of a-z, 0-9, '_' and '-', beginning with a letter or digit"
_REF = re.compile(REF_PATTERN[:-1] + r"\Z")


def is_ref(text: str) -> bool:
    return _REF.match(text) is not None


def graph_order(nodes: Sequence[tuple[str, Sequence[str]]]) -> tuple[int, ...]:
    """The places of ``nodes``, each a ref and the refs that it depends on: each after those, as written otherwise.

    The last place is that of the job that comes after all others. `InvalidInput` below ``jobs`` where there is no such
    order.
    """
    places: dict[str, int] = {}
    for place, (ref, _) in enumerate(nodes):
        if places.setdefault(ref, place) != place:
            raise InvalidInput(("jobs", place, "ref"), f"{quoted(ref)} is there twice", "each ref once")
    needs = [_needs(place, ref, refs, places) for place, (ref, refs) in enumerate(nodes)]
    order: list[int] = []
    left = dict.fromkeys(range(len(nodes)))
    while left:
        ready = next((place for place in left if needs[place].isdisjoint(left)), None)
        if ready is None:
            place = next(iter(left))
            raise InvalidInput(("jobs", place, "depends_on"), "waits for itself, round about", "no circle")
        order.append(ready)
        del left[ready]
    needed = set().union(*needs)
    ends = [place for place in range(len(nodes)) if place not in needed]
    if len(ends) > 1:
        named = " and ".join(quoted(nodes[place][0]) for place in ends[:2])
        problem = f"no job comes after {named}"
        raise InvalidInput(("jobs",), problem, "one job that comes after all others: add one that depends on them")
    return tuple(order)


def _needs(place: int, ref: str, refs: Sequence[str], places: dict[str, int]) -> set[int]:
    for number, other in enumerate(refs):
        path = ("jobs", place, "depends_on", number)
        if other not in places:
            raise InvalidInput(path, f"no job of this schedule has the ref {quoted(other)}", " or ".join(places))
        if other == ref:
            raise InvalidInput(path, f"{quoted(ref)} depends on itself", "the refs of others")
        if other in refs[:number]:
            raise InvalidInput(path, f"{quoted(other)} is there twice", "each ref once")
    return {places[other] for other in refs}
