"""One dispatcher and its time, and the facts that a scene is made of. Spans are milliseconds since it began."""

from collections.abc import Sequence
from typing import Any

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Decision, Settlement
from hascheduler.dispatch.dispatcher import Dispatcher
from hascheduler.dispatch.explanation import Explanation
from hascheduler.dispatch.inputs import Input, Settled, Step, TermBegan
from hascheduler.mirror.changes import JobSeen, ProcessorSeen
from hascheduler.model.job import JobRef
from tests.unit.dispatch.nouns import make_processor, wall

CONFIG = DispatchConfig()
START_MS, ECHO_MS, DOUBT_MS = CONFIG.start_timeout_ms, CONFIG.echo_timeout_ms, CONFIG.doubt_ms


class Scene:
    def __init__(self, *facts: Input, leading: bool = True, **limits: Any) -> None:
        self.core = Dispatcher(DispatchConfig(**limits))
        self.core.step(wall(0), facts)
        self.began = self.at(0, TermBegan(1)) if leading else Step()

    def at(self, span_ms: int, *inputs: Input) -> Step:
        return self.core.step(wall(span_ms), inputs)

    def why(self, job_id: str, span_ms: int, **asked: Any) -> Explanation:
        explanation = self.core.explain(job_id, wall(span_ms), **asked)
        assert explanation is not None
        return explanation


def jobs(*seen: JobRef) -> list[Input]:
    return [JobSeen(job) for job in seen]


def processors(*ids: str, **more: Any) -> list[Input]:
    return [ProcessorSeen(make_processor(id, **more)) for id in ids]


def settled(decisions: Sequence[Decision], settlement: Settlement = Settlement.DONE) -> list[Input]:
    return [Settled(decision, settlement) for decision in decisions]
