"""The explanation of why a job waits, as responses show it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing.wire_format import instant_or_none
from hascheduler.dispatch.explanation import Block, BlockReason, Explanation, QueuePosition
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.policy import Criterion
from hascheduler.ports import StoredDocument
from hascheduler.wire.fields import instant_text

_STATES = {"waiting": JobState.PENDING, "dispatched": JobState.DISPATCHED, "running": JobState.RUNNING}
_BLOCKED: dict[str, Any] = {
    "job": "job:0194f3a1b2c3000001deadbeef01",
    "state": "pending",
    "seen": True,
    "summary": "it waits: 3 of at most 3 jobs of 'repack' run",
    "processor": None,
    "finished_at": None,
    "error": None,
    "blocks": [
        {
            "rule": "definition",
            "because": "3 of at most 3 jobs of 'repack' run",
            "unblocked_by": "when one of them ends",
            "numbers": {"running": 3, "cap": 3},
            "until": None,
        }
    ],
    "standing": None,
}
_STANDING: dict[str, Any] = {
    **_BLOCKED,
    "summary": "nothing holds it back, 2 jobs go before it",
    "blocks": [],
    "standing": {
        "ahead": 2,
        "exact": True,
        "first": "job:0194f3a1b2c3000000deadbeef01",
        "deciding": "fairness",
        "criteria": [{"criterion": "lane", "value": "1/8", "first": "1/8"}],
    },
}


class BlockResponse(BaseModel):
    rule: BlockReason = Field(description="Which kind of thing it is, for programs")
    because: str = Field(description="A sentence, with the numbers in it")
    unblocked_by: str = Field(description="What would end it")
    numbers: dict[str, int | str | list[str]] = Field(
        description="The figures, names and lists that the sentence is made of, by name"
    )
    until: str | None = Field(description="When it ends by itself, where that is known")


class CriterionResponse(BaseModel):
    criterion: Criterion = Field(description="What is compared")
    value: str = Field(
        description="What it makes of this job, with its unit: spans in `s`, a `score` in `points` (16 for a second of "
        "waiting, 1024 for a step of priority), a lane's share of the cluster as a fraction"
    )
    first: str = Field(description="What it makes of the job that goes next, likewise")


class QueuePositionResponse(BaseModel):
    ahead: int = Field(description="How many jobs that may go as soon as it may go before it")
    exact: bool = Field(description="False: at least so many")
    first: str = Field(description="The job that goes next")
    deciding: Criterion | None = Field(description="The first criterion in which the two differ; null: it is the next")
    criteria: list[CriterionResponse] = Field(description="In the order in which they are compared")


class WhyResponse(BaseModel):
    """A job that waits has `blocks`, a `standing`, or both where all that it waits for is capacity."""

    model_config = ConfigDict(json_schema_extra={"examples": [_BLOCKED, _STANDING]})

    job: str = Field(description="The job's id")
    state: JobState = Field(description="`pending` is what has reasons to wait")
    seen: bool = Field(description="Whether this replica knows it as a job that has not ended; else it is as stored")
    summary: str = Field(description="The answer in one sentence, for people")
    processor: str | None = Field(description="Who has it, while dispatched or running")
    finished_at: str | None = Field(description="When it ended; null before that")
    error: str | None = Field(
        default=None,
        description="Why it failed, or was cancelled; while it waits, how its last attempt ended; where that is known",
    )
    blocks: list[BlockResponse] = Field(description="All that holds it back now")
    standing: QueuePositionResponse | None = Field(description="Where it stands among those who wait for nothing else")


def show_explanation(explanation: Explanation, caller: Caller, document: StoredDocument | None = None) -> WhyResponse:
    """``document`` is the stored job, for what no mirror has: what its attempts say."""
    if not caller.sees_payloads:
        explanation = replace(explanation, blocks=tuple(map(_without_values, explanation.blocks)))
    return WhyResponse(
        job=explanation.job_id,
        state=_STATES[explanation.state],
        seen=True,
        summary=_summary(explanation, said := _said(explanation, document or {})),
        processor=explanation.processor,
        finished_at=None,
        error=said if explanation.state == "waiting" else None,
        blocks=[_block(block) for block in explanation.blocks],
        standing=None if explanation.position is None else _standing(explanation.position),
    )


def show_unseen(document: StoredDocument, unready_reason: str) -> WhyResponse:
    """The answer for a stored job that this replica does not know; `InvalidInput` if the document can't be read."""
    job = decode_job(document["_id"], document)
    finished_at = instant_or_none(document, "finished_at_ms")
    stored_error = document.get("error")
    error = str(stored_error) if job.state in TERMINAL and stored_error is not None else None
    if job.state in TERMINAL:
        summary = f"it {_ended(job.state)}" + (f" at {finished_at}" if finished_at else "")
        summary += f": {error}" if error else ""
    else:
        because = f": {unready_reason}" if unready_reason else ""
        summary = f"it is {job.state}, and this replica has not seen it yet{because}"
    return WhyResponse(
        job=job.id,
        state=job.state,
        seen=False,
        summary=summary,
        processor=job.processor,
        finished_at=finished_at,
        error=error,
        blocks=[],
        standing=None,
    )


def _said(explanation: Explanation, document: StoredDocument) -> str | None:
    """Return the progress of an attempt that runs, or the error of the last one of a job that waits."""
    progress, attempts = document.get("progress"), document.get("attempts")
    if explanation.state == "running" and isinstance(progress, Mapping):
        return str(progress.get("text") or "") or None
    if explanation.state == "waiting" and isinstance(attempts, list) and attempts and isinstance(attempts[-1], Mapping):
        return str(attempts[-1].get("error") or "") or None
    return None


def _ended(state: JobState) -> str:
    return "was cancelled" if state is JobState.CANCELLED else state.value


def _summary(explanation: Explanation, said: str | None) -> str:
    if explanation.state == "dispatched":
        return f"it is promised to {explanation.processor}, which has not started it yet"
    if explanation.overdue is not None:
        since_ms = explanation.overdue.since_ms
        since = "" if since_ms is None else f" at {instant_text(since_ms)}"
        return (
            f"attempt {explanation.overdue.attempt} timed out{since}; its thread at {explanation.processor} has not "
            "ended yet: its slot and conflict groups are held until then"
        )
    if explanation.state == "running":
        return f"it runs at {explanation.processor}" + (f": {said}" if said else "")
    place = _place(explanation.position)
    last = f"; its last attempt: {said}" if said else ""
    if explanation.blocks:
        return f"it waits: {'; '.join([*(block.because for block in explanation.blocks), *place])}{last}"
    return ", ".join(["nothing holds it back", *place]) + last


def _place(standing: QueuePosition | None) -> list[str]:
    if standing is None:
        return []
    if standing.ahead == 0:
        return ["and it is next"]
    ahead = f"{'' if standing.exact else 'at least '}{standing.ahead}"
    return [f"{ahead} {'job goes' if standing.ahead == 1 else 'jobs go'} before it"]


def _without_values(block: Block) -> Block:
    """``block``, without what a payload has at the key of a limit."""
    key = block.numbers.get("key")
    if not isinstance(key, str) or not key.startswith("payload."):
        return block
    numbers = {name: figure for name, figure in block.numbers.items() if name != "value"}
    return replace(block, because=f"as many as may with its value at {key} run, or began of late", numbers=numbers)


def _block(block: Block) -> BlockResponse:
    return BlockResponse(
        rule=block.rule,
        because=block.because,
        unblocked_by=block.unblocked_by,
        numbers=dict(block.numbers),
        until=None if block.until_ms is None else instant_text(block.until_ms),
    )


def _standing(standing: QueuePosition) -> QueuePositionResponse:
    return QueuePositionResponse(
        ahead=standing.ahead,
        exact=standing.exact,
        first=standing.first,
        deciding=standing.deciding,
        criteria=[
            CriterionResponse(criterion=worth.criterion, value=worth.value, first=worth.first)
            for worth in standing.values
        ],
    )
