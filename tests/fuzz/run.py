"""One decoder and one seed: as many inputs as asked for, each within bounds of CPU and memory.

The bounds are far above what any input should cost, and far below what stops a replica's loop.
"""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.decoders import DECODERS

CPU_S_MAX = 2.0
"""Of this thread, so that a busy machine changes nothing."""
MEMORY_BYTES_MAX = 64 * 1024 * 1024


class TooDear(Exception):
    """An input that cost more than it may."""


def watched(decode: Callable[[Any], object], given: Any, refusals: tuple[type[Exception], ...]) -> None:
    """Decode it; anything but an answer and ``refusals`` gets out, and so does `TooDear`."""
    tracemalloc.start()
    began = time.thread_time()
    try:
        decode(given)
    except refusals:
        pass
    finally:
        cpu_s = time.thread_time() - began
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    if cpu_s > CPU_S_MAX or peak > MEMORY_BYTES_MAX:
        raise TooDear(f"{cpu_s:.2f} s of CPU, {peak >> 20} MiB at most")


def fuzz(name: str, seed_number: int, examples: int) -> None:
    """Raises what an input made, shrunk; the input stands in the error's notes."""
    decoder = DECODERS[name]

    @seed(seed_number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(decoder.inputs)
    def run(value: object) -> None:
        try:
            watched(decoder.decode, value, decoder.refusals)
        except Exception as error:
            error.add_note(f"{name} was given {value!r:.4000}")
            raise

    run()
