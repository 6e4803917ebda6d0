"""What a simulation may take, and how its process says that it met a limit; for both sides of the pipe."""

from dataclasses import dataclass

WRONG = 12
"""The exit status of the process: standard output says what of its input is wrong."""
TOO_LARGE = 13
"""… : it takes more memory than it may, or its answer (if standard output says so) would be too large."""


@dataclass(frozen=True, slots=True)
class SimulationLimits:
    """Of memory it is the address space, of which an idle Python takes some 50 MiB."""

    jobs_max: int = 20_000
    cpu_s_max: int = 15
    run_s_max: int = 60
    memory_bytes_max: int = 256 * 1024 * 1024
    answer_bytes_max: int = 8 * 1024 * 1024
