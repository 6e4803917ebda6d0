"""Garbage collection: seldom, because there are next to no cycles and many live objects.

The objects of each event, message and request are freed with their last reference. The search for cycles visits all
live objects every time: by default after every 700 new objects, a third of the time that following a busy stream takes.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS_MAX = 50_000
_YOUNG_PASSES = 20
_MIDDLE_PASSES = 50


def collect_seldom() -> None:
    """Collect seldom in the whole process, from its start."""
    gc.set_threshold(_NEW_OBJECTS_MAX, _YOUNG_PASSES, _MIDDLE_PASSES)


@contextmanager
def without_collecting() -> Iterator[None]:
    """Collect nothing while the block reads a snapshot, nor the snapshot's objects until the next one.

    They hold no cycles and stay: repeated searches would be much of the time that reading them takes, and later a
    pause.
    """
    gc.disable()
    gc.unfreeze()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
