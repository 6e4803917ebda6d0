"""Scenarios to look at, one file each; its ``note`` says what there is to see."""

from importlib.resources import files

from hascheduler.errors import InvalidInput
from hascheduler.simulate.reading import read_text

_SUFFIX = ".yaml"


def example_names() -> list[str]:
    return sorted(
        entry.name.removesuffix(_SUFFIX) for entry in files(__name__).iterdir() if entry.name.endswith(_SUFFIX)
    )


def example_text(name: str) -> str:
    """The scenario file by that name; an unknown one is an `InvalidInput`."""
    if name not in example_names():
        raise InvalidInput(("--example",), f"{name[:64]!r} is unknown", f"one of {', '.join(example_names())}")
    return files(__name__).joinpath(name + _SUFFIX).read_text("utf-8")


def example_note(name: str) -> str:
    return str(read_text(example_text(name))["note"])
