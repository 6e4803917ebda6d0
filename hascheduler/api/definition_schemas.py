"""Definitions as requests write them and as answers show them."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from hascheduler.api.texts import Strict
from hascheduler.model.definition import ATTEMPTS_MAX_DEFAULT, Definition
from hascheduler.model.documents import decode_definition
from hascheduler.ports import StoredDocument

MAX_CONCURRENCY_MAX = 1_000_000


class RetryBody(Strict):
    attempts: int = Field(
        default=ATTEMPTS_MAX_DEFAULT, ge=1, le=100, description="Attempts that may be lost before the job fails"
    )


class DefinitionBody(Strict):
    """The limits of a named type of job; what is left out gets its default."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_concurrency": 3, "retry": {"attempts": 5}}]})

    max_concurrency: int | None = Field(
        default=None, ge=1, le=MAX_CONCURRENCY_MAX, description="How many of its jobs run at once; null: no limit"
    )
    retry: RetryBody = RetryBody()

    def definition(self, name: str) -> Definition:
        return Definition(name=name, max_concurrency=self.max_concurrency, attempts_max=self.retry.attempts)


class RetryResponse(BaseModel):
    attempts: int


class DefinitionResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "sleep", "rev": 2, "max_concurrency": 3, "retry": {"attempts": 5}}]}
    )

    name: str
    rev: int = Field(description="Grows with every edit")
    max_concurrency: int | None
    retry: RetryResponse


def show_definition(document: StoredDocument) -> DefinitionResponse:
    """`InvalidInput` when the stored document can't be read."""
    definition = decode_definition(document["_id"], document)
    return DefinitionResponse(
        name=definition.name,
        rev=definition.rev,
        max_concurrency=definition.max_concurrency,
        retry=RetryResponse(attempts=definition.attempts_max),
    )


def request_form(document: StoredDocument) -> dict[str, Any]:
    """What a request would have to say to get this definition: what a merge patch is merged into."""
    return show_definition(document).model_dump(mode="json", include=set(DefinitionBody.model_fields))
