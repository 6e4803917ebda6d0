"""Short scenarios: only what matters."""

from typing import Any

from hascheduler.simulate.parsing import scenario_of
from hascheduler.simulate.run import RunOutcome, as_document, run


def job(id: str, duration: object = 1, **rest: object) -> dict[str, Any]:
    return {"id": id, "definition": "x", "duration": duration, **rest}


def processor(id: str = "p", **rest: object) -> dict[str, Any]:
    return {"id": id, **rest}


def document(*jobs: dict[str, Any], **rest: object) -> dict[str, Any]:
    """One slot for jobs of definition ``x``, unless ``rest`` says otherwise."""
    return {"definitions": {"x": {}}, "processors": [processor()], "jobs": list(jobs), **rest}


def outcome_of(*jobs: dict[str, Any], **rest: object) -> RunOutcome:
    return run(scenario_of(document(*jobs, **rest)))


def dispatched(outcome: RunOutcome) -> list[list[object]]:
    found = as_document(outcome)["dispatched"]
    assert isinstance(found, list)
    return found
