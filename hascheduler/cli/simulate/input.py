"""The scenarios that the command runs, and the policies that it runs them under."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hascheduler.dispatch.recording import is_recording, read_recording
from hascheduler.errors import InvalidInput
from hascheduler.model.policy import PRESETS
from hascheduler.simulate.examples import example_names, example_text
from hascheduler.simulate.from_recording import recorded_scenario
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.simulate.reading import BYTES_MAX
from hascheduler.simulate.scenario import Scenario


def complete_example(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    return [name for name in example_names() if name.startswith(incomplete)]


def complete_policy(ctx: Any, args: list[str], incomplete: str) -> list[str]:
    return [name for name in PRESETS if name.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """``text`` of a scenario or a recording, and where it is from."""

    name: str
    text: str

    @property
    def is_recording(self) -> bool:
        return is_recording(self.text)


def read_source(file: str | None, example: str | None) -> ScenarioSource:
    """From the file (``-``: standard input) or the example."""
    if (file is None) == (example is None):
        problem = "missing" if file is None else "given, and --example too"
        raise InvalidInput(("FILE",), problem, "a scenario file, - or --example NAME")
    source = "standard input" if file == "-" else file or str(example)
    return ScenarioSource(source, _read(file) if file is not None else example_text(str(example)))


def scenario_from(source: ScenarioSource) -> Scenario:
    """The scenario in the source, or the recorded work as one."""
    with errors_located(source):
        if source.is_recording:
            return recorded_scenario(*read_recording(source.text.splitlines()))
        return parse_scenario(source.text)


@contextmanager
def errors_located(source: ScenarioSource) -> Iterator[None]:
    """Errors inside the block name the source and the place in it."""
    try:
        yield
    except InvalidInput as error:
        where = (f"{source.name}, {error.path[0]}", *error.path[1:]) if error.path else (source.name,)
        raise InvalidInput(where, error.problem, error.expected) from None


def scenarios_under(scenario: Scenario, policy: str | None, compared: list[str]) -> list[Scenario]:
    """The scenario, under ``policy`` if there is one, and then under those it is compared with, each once."""
    first = scenario if policy is None else scenario.under(policy, "--policy")
    found = {first.policy.name: first}
    for each in compared:
        for name in _policies(each):
            found.setdefault(name, scenario.under(name, "--compare"))
    return list(found.values())


def _policies(text: str) -> list[str]:
    """Presets with commas between them, or one list of criteria."""
    names = [name.strip() for name in text.split(",")]
    return names if all(name in PRESETS for name in names) else [",".join(names)]


def _read(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read()
        path = Path(file)
        if path.stat().st_size > BYTES_MAX:
            raise InvalidInput((file,), "too large", f"at most {BYTES_MAX >> 20} MiB")
        return path.read_text("utf-8")
    except OSError as error:
        raise InvalidInput((file,), f"{error.strerror}", "a file that can be read") from None
    except UnicodeDecodeError:
        raise InvalidInput((file,), "is not UTF-8", "YAML or JSON") from None
