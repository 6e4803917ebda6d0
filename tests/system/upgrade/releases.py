"""The releases that run side by side in these tests, and the previous one as it was committed."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from hascheduler import __version__
from tests.earlier_code import unpack, why_no_history

ROOT = Path(__file__).resolve().parents[3]
PREVIOUS_VERSION = "0.1.0"
_PREVIOUS = ("v0.1.0", "ce630d8")
"""Its tag, and where tags were not fetched the commit that it names."""


@dataclass(frozen=True, slots=True)
class Release:
    """``folder`` holds its packages; its processes start there, so that no other release's are found."""

    version: str
    folder: Path


def this_release() -> Release:
    return Release(__version__, ROOT)


def previous_release(into: Path) -> Release:
    """Unpacks it there; skips the test where this is no checkout with a history."""
    if unpack(into, *_PREVIOUS):
        return Release(PREVIOUS_VERSION, into)
    problem = why_no_history()
    if problem:
        pytest.skip(f"the previous release is taken from git, and {problem}")
    raise AssertionError(f"none of {' and '.join(_PREVIOUS)} is in this repository")


def next_release(into: Path) -> Release:
    """As this one, but that it reads form 2 of the documents too: what a release has that brings a new form."""
    (into / "sitecustomize.py").write_text(
        "import hascheduler.model.schema_version as schema_version\n"
        "schema_version.NEWEST_VERSION = 2\n"
        "import hascheduler\n"
        "hascheduler.__version__ = '0.3.0'\n"
    )
    for package in ("hascheduler", "processors"):
        (into / package).symlink_to(ROOT / package)
    return Release("0.3.0", into)
