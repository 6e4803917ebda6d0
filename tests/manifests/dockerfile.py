"""The Dockerfile, read: its stages, and the instructions of each."""

import io
import json
import re
from dataclasses import dataclass
from functools import cache

from dockerfile_parse import DockerfileParser

from tests.manifests.rendering import ROOT


@dataclass(frozen=True)
class Instruction:
    name: str
    value: str

    @property
    def exec_form(self) -> list[str]:
        """Its words; `ValueError` where it is the shell's form."""
        words: list[str] = json.loads(self.value)
        return words


@dataclass(frozen=True)
class Stage:
    name: str
    base: str
    own: tuple[Instruction, ...]


@cache
def arguments() -> dict[str, str]:
    """What may be set for the whole build, with its defaults."""
    first = [found for found in _instructions() if found.name == "ARG"]
    return dict(found.value.split("=", 1) for found in first if "=" in found.value)


@cache
def stages() -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    for instruction in _instructions():
        if instruction.name == "FROM":
            base, name = re.fullmatch(r"(\S+) AS (\S+)", instruction.value).groups()  # type: ignore[union-attr]
            found[name] = Stage(name, base, ())
        elif found:
            last = list(found)[-1]
            found[last] = Stage(last, found[last].base, (*found[last].own, instruction))
    return found


def lineage(stage: str) -> list[Instruction]:
    """The stage's instructions, after those of the stages it is built on."""
    found = stages()[stage]
    return [*(lineage(found.base) if found.base in stages() else []), *found.own]


def last(stage: str, name: str) -> Instruction:
    return [found for found in lineage(stage) if found.name == name][-1]


def copied(stage: str) -> list[list[str]]:
    """Of each COPY from the build context: its sources, then where they go."""
    lines = [found.value.split() for found in stages()[stage].own if found.name == "COPY"]
    return [words for words in lines if not words[0].startswith("--from=")]


def _instructions() -> list[Instruction]:
    parser = DockerfileParser(fileobj=io.BytesIO((ROOT / "Dockerfile").read_bytes()))
    return [
        Instruction(found["instruction"], found["value"])
        for found in parser.structure
        if found["instruction"] != "COMMENT"
    ]
