"""Samples the process from its start where ``BENCH_SAMPLES`` names a folder, and does nothing elsewhere.

Owner of the files ``<pid>.stacks``, ``<pid>.turns`` and ``<pid>.price`` in that folder. Python imports it by its name
from the path, in whichever folder it runs, so it imports nothing of this project.
"""

import asyncio
import atexit
import ctypes
import json
import os
import signal
import struct
import time
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

FOLDER = "BENCH_SAMPLES"
INTERVAL_S = 0.01
"""Of CPU. Kernels look at it in their ticks, which may be 4 ms apart."""
TURNS = struct.Struct("=dQ")
"""The monotonic clock in seconds, and the turns of the event loop until then."""
HEAD = "Stack (most recent call first):"
_DEPTH = 40
_TRIES = 50


class _LibuvMetrics(ctypes.Structure):
    """libuv's ``uv_metrics_t``."""

    _fields_ = (
        ("loop_count", ctypes.c_uint64),
        ("events", ctypes.c_uint64),
        ("events_waiting", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64 * 13),
    )


def sample_stacks(path: Path) -> None:
    """From now on, after each `INTERVAL_S` of CPU, a stack is added to that file, in `faulthandler`'s words.

    The interpreter calls a handler between two instructions: what ran in C is charged to the frame that called it.
    `faulthandler` itself writes from within the signal, where a frame may be half made: it crashed sampled replicas.
    """
    # It stays open for as long as the process lives: the handler writes to its descriptor.
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(_number: int, innermost: FrameType | None) -> None:
        lines, frame = [HEAD], innermost
        while frame is not None:
            code = frame.f_code
            lines.append(f'  File "{code.co_filename}", line {frame.f_lineno} in {code.co_name}')
            frame = frame.f_back
        os.write(file, "\n".join([*lines, ""]).encode(errors="replace"))

    def stop() -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_IGN)

    signal.signal(signal.SIGPROF, write)
    # The interpreter restores the default before its process ends, which would kill it.
    atexit.register(stop)
    shallow_us, deep_us = _sample_us(0), _sample_us(_DEPTH)
    frame_us = max(0.0, deep_us - shallow_us) / _DEPTH
    path.with_suffix(".price").write_text(json.dumps({"sample_us": shallow_us, "frame_us": frame_us}))
    signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)


def counting_loop(path: Path, every_s: float = 1.0) -> asyncio.AbstractEventLoop:
    """A loop of uvloop that writes its turns to that file every so often, as `TURNS`; not where libuv is too old."""
    import uvloop.loop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    libuv = ctypes.CDLL(uvloop.loop.__file__)
    if hasattr(libuv, "uv_metrics_info"):
        pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
        pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        # uvloop's types don't tell of it. The capsule that holds the address has no name.
        libuv_loop: Any = vars(uvloop.loop)["libuv_get_loop_t_ptr"]
        address = ctypes.c_void_p(pointer_of(libuv_loop(loop), None))
        metrics = _LibuvMetrics()

        def write() -> None:
            libuv.uv_metrics_info(address, ctypes.byref(metrics))
            with path.open("ab") as file:
                file.write(TURNS.pack(time.monotonic(), metrics.loop_count))
            loop.call_later(every_s, write)

        loop.call_soon(write)
    return loop


def _sample_us(depth: int) -> float:
    """What one sample costs, in CPU, at so many frames more."""
    if depth:
        return _sample_us(depth - 1)
    began = time.thread_time()
    for _ in range(_TRIES):
        signal.raise_signal(signal.SIGPROF)
    return 1e6 * (time.thread_time() - began) / _TRIES


def _begin(own: Path) -> None:
    import uvloop

    # A replica and a processor call `uvloop.run`, each once.
    factory: Any = partial(counting_loop, own.with_suffix(".turns"))
    uvloop.run = partial(uvloop.run, loop_factory=factory)
    sample_stacks(own.with_suffix(".stacks"))


if FOLDER in os.environ:
    _begin(Path(os.environ[FOLDER], str(os.getpid())))
