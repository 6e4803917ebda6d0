"""Example scenarios, one file each; its ``note`` tells what it shows."""

from importlib.resources import files

from hascheduler.errors import InvalidInput
from hascheduler.simulate.parsing import parse_scenario


def example_names() -> list[str]:
    return sorted(each.name.removesuffix(".yaml") for each in files(__name__).iterdir() if each.name.endswith(".yaml"))


def example_text(name: str) -> str:
    """Return the scenario file of that name; raise `InvalidInput` if there is none."""
    if name not in example_names():
        raise InvalidInput(("--example",), f"{name[:64]!r} is unknown", f"one of {', '.join(example_names())}")
    return files(__name__).joinpath(f"{name}.yaml").read_text("utf-8")


def example_note(name: str) -> str:
    return parse_scenario(example_text(name)).note
