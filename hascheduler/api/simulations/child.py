"""The process of one simulation: a scenario from standard input, the comparison of its runs to standard output.

It limits itself before it reads a byte: CPU seconds, memory, no files, no processes, the lowest priority; and while it
runs it rests as long as it worked, so that of the replica's share of CPU it takes half a core at most. The exit status
says what standard output has: 0 the comparison, `WRONG` the place in the input that is wrong, `TOO_LARGE` which limit
it met. Its parent ends it in any other case; should that one be gone, the alarm does.
"""

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from time import process_time, sleep
from typing import Any

from hascheduler.api.simulations.limits import TOO_LARGE, WRONG, SimulationLimits
from hascheduler.dispatch.recording import is_recording, read_recording
from hascheduler.errors import InvalidInput
from hascheduler.simulate.from_recording import recorded_scenario
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.picture import comparison_document
from hascheduler.simulate.replay import replay
from hascheduler.simulate.run import run
from hascheduler.simulate.scenario import Scenario

_FILES_MAX = 64
_SLICE_S = 0.02
_NEAR = 0.9
_KIB = 1024
_SPARE_BYTES = 16 * 1024 * 1024


def main(given: dict[str, int]) -> None:
    """With the fields of `SimulationLimits`."""
    limits = SimulationLimits(**given)
    _limit(limits)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    more = (hard, hard)
    try:
        answer, status = _answer(json.loads(sys.stdin.buffer.read()), limits), 0
    except InvalidInput as error:
        answer = json.dumps({"path": error.path, "problem": error.problem, "expected": error.expected}).encode()
        status = WRONG
    except Exception as error:
        resource.setrlimit(resource.RLIMIT_AS, more)  # to be able to say so
        # Out of memory, the interpreter may also say that an error has no exception, or a library something of its own.
        if not (isinstance(error, MemoryError | SystemError) or _peak_bytes() > _NEAR * limits.memory_bytes_max):
            raise
        answer, status = b"", TOO_LARGE
    if len(answer) > limits.answer_bytes_max:
        answer, status = b"answer", TOO_LARGE
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    os._exit(status)


def _peak_bytes() -> int:
    """The most that the address space has been; 0 where the kernel does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            return next(int(line.split()[1]) * _KIB for line in lines if line.startswith("VmPeak"))
    except (OSError, StopIteration):
        return 0


def _limit(limits: SimulationLimits) -> None:
    # Where the container's memory runs out, the kernel ends this process, and not the replica beside it.
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")
    for kind, soft, spare in (
        # Past the soft limit of CPU comes a signal that says so, and past the hard one the same as for anything else.
        (resource.RLIMIT_CPU, limits.cpu_s_max, 1),
        (resource.RLIMIT_AS, limits.memory_bytes_max, _SPARE_BYTES),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NPROC, 0, 0),
        (resource.RLIMIT_NOFILE, _FILES_MAX, 0),
    ):
        _, hard = resource.getrlimit(kind)
        most = soft + spare if hard == resource.RLIM_INFINITY else min(soft + spare, hard)
        resource.setrlimit(kind, (min(soft, most), most))
    signal.alarm(limits.run_s_max + 1)


def _answer(asked: dict[str, Any], limits: SimulationLimits) -> bytes:
    text, policies = asked["text"], asked["policies"]
    recorded = is_recording(text)
    try:
        scenario, replayed = _recorded(text) if recorded else (parse_scenario(text, limits.jobs_max), None)
    except InvalidInput as error:
        raise InvalidInput(("scenario", *error.path), error.problem, error.expected) from None
    if len(scenario.jobs) > limits.jobs_max:
        raise InvalidInput(("scenario",), f"a recording of {len(scenario.jobs):,} jobs", f"at most {limits.jobs_max:,}")
    pace = _pace()
    outcomes = [run(each, pace) for each in _scenarios(scenario, policies, own=recorded or not policies)]
    return json.dumps({"replay": replayed, **comparison_document(outcomes)}, separators=(",", ":")).encode()


def _scenarios(scenario: Scenario, policies: list[str], *, own: bool) -> list[Scenario]:
    """The scenario under each of the policies once; before them under its ``own``."""
    found = {scenario.policy.name: scenario} if own else {}
    for place, policy in enumerate(policies):
        each = scenario.under(policy, f"policies.{place}")
        found.setdefault(each.policy.name, each)
    return list(found.values())


def _recorded(text: str) -> tuple[Scenario, dict[str, Any]]:
    """The recorded work, and whether the core decides the same again."""
    lines = text.splitlines()
    scenario = recorded_scenario(*read_recording(lines))
    pace = _pace()
    try:
        replayed = replay(*read_recording(lines), progress=lambda count: pace(count, count))
    except (InvalidInput, MemoryError, SystemError):
        raise
    except Exception as error:  # what no leader has recorded may break the core's rules
        raise InvalidInput((), f"it can't be decided again: {type(error).__name__}", "a leader's recording") from None
    return scenario, {
        "steps": replayed.steps,
        "decisions": replayed.decisions,
        "end": replayed.end,
        "identical": replayed.difference is None,
        "differs_at_step": None if replayed.difference is None else replayed.difference.step,
    }


def _pace() -> Callable[[int, int], None]:
    """To be called often: rests as long as was worked since."""
    rested_at_s = process_time()

    def rest(done: int, total: int) -> None:
        nonlocal rested_at_s
        worked_s = process_time() - rested_at_s
        if worked_s >= _SLICE_S:
            sleep(worked_s)
            rested_at_s = process_time()

    return rest
