"""Which processors speak HTTP: the others are no business of these routes."""

from http import HTTPStatus

from hascheduler.api.problems import Refusal
from hascheduler.model.processor import is_polling
from hascheduler.model.quoting import quoted


def unknown(processor: str) -> Refusal:
    """404: gone, or never there."""
    detail = f"no processor {quoted(processor)} is registered (any more); register again and take the new id"
    return Refusal(HTTPStatus.NOT_FOUND, "not-registered", detail)


def demand_polling(processor: str) -> None:
    if not is_polling(processor):
        raise unknown(processor)
