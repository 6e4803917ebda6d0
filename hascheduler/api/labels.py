"""``?label=team=a&label=…``: only what has all of these labels."""

from typing import Annotated

from pydantic import AfterValidator, Field

from hascheduler.api.pages import PageQuery
from hascheduler.api.texts import LABELS_MAX, NAME, TEXT_LENGTH_MAX, wrong
from hascheduler.model.repr_limits import quoted


def _label(text: str) -> str:
    key, separator, value = text.partition("=")
    if not separator or not NAME.match(key) or len(value) > TEXT_LENGTH_MAX:
        raise wrong(f"{quoted(text)} is not a label", "key=value, as in team=a")
    return text


def _each_key_once(labels: list[str]) -> list[str]:
    keys = [label.partition("=")[0] for label in labels]
    if len(set(keys)) < len(keys):
        raise wrong("a key is there twice, and nothing has two values of one label", "each key once")
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
