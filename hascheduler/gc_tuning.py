"""When Python looks for cyclic garbage: seldom, because there is next to none and much that lives.

What a process makes of each event, message and request is freed with its last reference. The search for cycles
goes through all that lives again and again: by default after every 700 new objects, a third of the time that following
a busy stream takes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS_MAX = 50_000
_YOUNG_PASSES = 20
_MIDDLE_PASSES = 50


def collect_seldom() -> None:
    """For the whole process, from its start."""
    gc.set_threshold(_NEW_OBJECTS_MAX, _YOUNG_PASSES, _MIDDLE_PASSES)


@contextmanager
def without_collecting() -> Iterator[None]:
    """What a snapshot brings holds no cycles and stays: to search it again and again is much of the time that reading
    it takes, and later a pause. It is left out of all collections until the next snapshot."""
    gc.disable()
    gc.unfreeze()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
