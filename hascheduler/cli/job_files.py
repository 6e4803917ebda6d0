"""Files of jobs: JSON lines or a YAML list."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hascheduler.cli.documents import read_documents
from hascheduler.errors import InvalidInput


def read_jobs(source: str) -> list[Any]:
    """The jobs of a file, or of ``-``; `InvalidInput` says where it can't be read, and where there are none."""
    text = _text(source).removeprefix("\ufeff")  # with which some editors begin a file
    name = "standard input" if source == "-" else source
    jobs = list(_json_lines(text, name)) if text.lstrip().startswith("{") else _list(text, name)
    if not jobs:
        raise InvalidInput(("FILE",), f"{name} holds no jobs", "JSON lines, or a YAML list")
    return jobs


def _text(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.read()
        return Path(source).read_text("utf-8")
    except OSError as error:
        raise InvalidInput(("FILE",), f"{source}: {error.strerror}", "a file, or -") from None
    except UnicodeDecodeError:
        raise InvalidInput(("FILE",), f"{source} is not UTF-8", "JSON lines or YAML in UTF-8") from None


def _json_lines(text: str, name: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _json(line, f"{name}, line {number}")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput((where,), f"is not JSON: {error}", "one job a line, as JSON") from None


def _list(text: str, name: str) -> list[Any]:
    if text.lstrip().startswith("["):
        jobs = _json(text, name)
    else:
        documents = [document for document in read_documents(text, name) if document is not None]
        jobs = documents[0] if len(documents) == 1 else documents
    if not isinstance(jobs, list):
        raise InvalidInput((name,), "is no list of jobs", "JSON lines, or a YAML list")
    return jobs


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
