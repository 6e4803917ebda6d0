"""Query parameters: pages (``?after=`` the last id of the page before, ``?limit=``), ``?label=``, none of them twice.

A page names a stored document that can't be read beside the others: it is neither left out nor fails the whole page.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Generic, TypeVar, get_args

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.api.http.problems import FieldError, ProblemError
from hascheduler.api.routing.field_types import LABELS_MAX, NAME, TEXT_LENGTH_MAX, invalid_value
from hascheduler.errors import InvalidInput
from hascheduler.model.repr_limits import quoted
from hascheduler.ports import StoredDocument

PAGE_SIZE_MAX = 200
_PAGE_SIZE_DEFAULT = 100
_CURSOR_LENGTH_MAX = 512

Item = TypeVar("Item")


class PageQuery(BaseModel):
    """Unknown parameters are refused: a misspelt filter would otherwise return everything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: str | None = Field(
        default=None, max_length=_CURSOR_LENGTH_MAX, description="`next` of the page before; none for the first page"
    )
    limit: int = Field(default=_PAGE_SIZE_DEFAULT, ge=1, le=PAGE_SIZE_MAX, description="How many items at most")


class Unlisted(BaseModel):
    """A stored document that can't be read, and why."""

    id: str
    reason: str


def _with_example(schema: JsonDict, model: type[BaseModel]) -> None:
    """An example of a page, made of the examples of its items."""
    for item in get_args(model.model_fields["items"].annotation):
        extra = getattr(item, "model_config", {}).get("json_schema_extra", {})
        schema["examples"] = [{"items": extra["examples"], "next": "the-last-of-this-page", "unreadable": []}]


class Page(BaseModel, Generic[Item]):
    model_config = ConfigDict(json_schema_extra=_with_example)

    items: list[Item]
    next: str | None = Field(description="Pass it as `after` for the next page; null on the last one")
    unreadable: list[Unlisted] = Field(default=[], description="Stored documents of this page that can't be read")


Paging = Annotated[PageQuery, Query()]


def page(documents: Sequence[StoredDocument], limit: int, show: Callable[[StoredDocument], Item]) -> Page[Item]:
    """The first ``limit`` of ``documents``; the store was asked for one more, to see whether there is a next page."""
    items: list[Item] = []
    unreadable: list[Unlisted] = []
    for document in documents[:limit]:
        try:
            items.append(show(document))
        except InvalidInput as error:
            unreadable.append(Unlisted(id=str(document["_id"]), reason=str(error)))
    more = len(documents) > limit
    return Page(items=items, next=str(documents[limit - 1]["_id"]) if more else None, unreadable=unreadable)


def _label(text: str) -> str:
    key, separator, value = text.partition("=")
    if not separator or not NAME.match(key) or len(value) > TEXT_LENGTH_MAX:
        raise invalid_value(f"{quoted(text)} is not a label", "key=value, as in team=a")
    return text


def _each_key_once(labels: list[str]) -> list[str]:
    keys = [label.partition("=")[0] for label in labels]
    if len(set(keys)) < len(keys):
        raise invalid_value("a key is there twice, and nothing has two values of one label", "each key once")
    return labels


Label = Annotated[str, AfterValidator(_label)]


class LabelledQuery(PageQuery):
    label: Annotated[list[Label], AfterValidator(_each_key_once)] = Field(
        default=[],
        max_length=LABELS_MAX,
        description="Only those with this label; several: with all",
        examples=["team=a"],
    )

    def labels(self) -> dict[str, str]:
        return {key: value for key, _, value in (label.partition("=") for label in self.label)}


LIST_PARAMETERS = frozenset({"label", "type", "verdict"})
"""The parameters, of all routes, that may be repeated."""


async def _each_once(request: Request) -> None:
    counts = Counter(name for name, _ in request.query_params.multi_items() if name not in LIST_PARAMETERS)
    errors = [
        FieldError((name,), f"{quoted(name)} is there {count} times", "each parameter once")
        for name, count in counts.items()
        if count > 1
    ]
    if errors:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-request", str(errors[0]), errors=errors)


EACH_ONCE = Depends(_each_once)
