"""The refusal of a whole batch, where some of its jobs are refused and it was to be all or none."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import orjson

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, FieldError, ProblemError


def require_all(refusals: Sequence[bytes | None]) -> None:
    """Returns if there are none. ``refusals`` are the answers of the jobs, in their order, as they would be sent.

    The status and the type are those of the first; each error has its job's place before its path.
    """
    refused: list[tuple[int, dict[str, Any]]] = [
        (place, orjson.loads(refusal)["problem"]) for place, refusal in enumerate(refusals) if refusal is not None
    ]
    if not refused:
        return
    errors: list[FieldError] = []
    for place, problem in refused:
        if len(errors) >= ERRORS_SHOWN_MAX:
            break
        told = problem["errors"] or [{"path": "", "problem": problem["detail"], "expected": ""}]
        errors += [_error(place, each) for each in told]
    first = refused[0][1]
    others = f"; {len(refused)} of {len(refusals)} jobs are refused, so none is submitted"
    raise ProblemError(
        HTTPStatus(first["status"]),
        first["type"].rpartition(":")[2],
        f"{errors[0]}{others}",
        errors=errors[:ERRORS_SHOWN_MAX],
    )


def _error(place: int, told: dict[str, Any]) -> FieldError:
    path = ("jobs", place, *told["path"].split(".")) if told["path"] else ("jobs", place)
    return FieldError(path, told["problem"], told.get("expected") or "")
