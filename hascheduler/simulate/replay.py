"""Replays a recording under the policy by which it was made: the core must decide the same, step by step."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hascheduler.dispatch.decisions import Decision
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.inputs import Input, TermBegan
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading
from hascheduler.model.values.instants import WallMs


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """The first step whose decisions differ: those that were recorded, and those of the replay."""

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
    difference: ReplayDifference | None


def replay(
    heading: RecordingHeading,
    steps: Iterable[RecordedStep | RecordingEnd],
    progress: Callable[[int], None] | None = None,
) -> Replayed:
    """Decide again until the first difference; ``progress`` gets the number of steps done."""
    core = Dispatcher(heading.config)
    count = decided = 0
    began: list[Input] = []
    for step in steps:
        if isinstance(step, RecordingEnd):
            return Replayed(count, decided, step.reason, None)
        if step.decisions is None:
            # What the leader knew already: the replay leads from the first recorded step on.
            began += [each for each in step.inputs if isinstance(each, TermBegan)]
            core.step(step.now, [each for each in step.inputs if not isinstance(each, TermBegan)])
            continue
        replayed = core.step(step.now, [*began, *step.inputs]).decisions
        began.clear()
        count += 1
        if replayed != step.decisions:
            return Replayed(count, decided, None, ReplayDifference(count, step.now, step.decisions, replayed))
        decided += len(replayed)
        if progress is not None:
            progress(count)
    return Replayed(count, decided, None, None)
