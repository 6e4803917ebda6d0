"""Replays a recording under the policy by which it was made: the core must decide the same, step by step."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hascheduler.dispatch.decisions import Decision
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.model.instants import WallMs
from hascheduler.simulate.recording import Ended, Heading, RecordedStep


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step whose decisions are others: those that were recorded, and those of the replay."""

    step: int
    now: WallMs
    recorded: tuple[Decision, ...]
    replayed: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class Replayed:
    """``end`` is why the recording ended; None: it was cut off. ``difference`` None: all decisions were the same."""

    steps: int
    decisions: int
    end: str | None
    difference: Difference | None


def replay(
    heading: Heading, steps: Iterable[RecordedStep | Ended], progress: Callable[[int], None] | None = None
) -> Replayed:
    """Until the first difference; ``progress`` is told how many steps are done."""
    core = Dispatcher(heading.config)
    count = decided = 0
    for step in steps:
        if isinstance(step, Ended):
            return Replayed(count, decided, step.reason, None)
        replayed = core.step(step.now, step.inputs).decisions
        if step.decisions is None and not replayed:
            continue
        count += 1
        recorded = step.decisions or ()
        if replayed != recorded:
            return Replayed(count, decided, None, Difference(count, step.now, recorded, replayed))
        decided += len(replayed)
        if progress is not None:
            progress(count)
    return Replayed(count, decided, None, None)
