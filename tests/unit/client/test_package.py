"""The SDK as a package: small to import, and both schedulers alike."""

import inspect
import runpy
import sys

import pytest

from hascheduler.client import AsyncScheduler, Scheduler
from tests.unit.api.doubles import the_routes


def test_both_schedulers_have_the_same_operations() -> None:
    def operations(kind: type) -> dict[str, tuple[list[str], str | None]]:
        return {
            name: (list(inspect.signature(method).parameters), method.__doc__)
            for name, method in vars(kind).items()
            if inspect.isfunction(method) and not name.startswith("_") and name not in ("close", "aclose")
        }

    assert operations(Scheduler) == operations(AsyncScheduler)
    assert len(operations(Scheduler)) == 20


def test_what_follows_from_other_files_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The types from the OpenAPI document, the synchronous scheduler from the asynchronous one."""
    monkeypatch.setattr(sys, "argv", ["generate-client", "--check"])
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr("hascheduler.api.app.create_routes", the_routes)  # which is made already
    script = runpy.run_path("scripts/generate-client")
    assert (script["main"](), capsys.readouterr().err) == (0, "")
