"""What a simulation may take, and how its process says that it met a limit; for both sides of the pipe."""

from dataclasses import dataclass

WRONG = 12
"""The exit status of a process whose input is wrong: standard output says what."""
TOO_LARGE = 13
"""… of one that takes more memory than it may, or (if standard output says so) has too large an answer."""


@dataclass(frozen=True, slots=True)
class SimulationLimits:
    """The limits of one run. That of memory bounds the address space, of which an idle Python takes some 50 MiB."""

    jobs_max: int = 20_000
    cpu_s_max: int = 15
    run_s_max: int = 60
    memory_bytes_max: int = 256 * 1024 * 1024
    answer_bytes_max: int = 8 * 1024 * 1024
