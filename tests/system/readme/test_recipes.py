"""What the documentation has one do, each block run as it stands, in the order of its page."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from hascheduler.model.collection import Collection
from tests.system.terminal import typed
from tests.unit.api.doubles import NOW, World

ROOT = Path(__file__).parents[3]
PATIENCE_S = 240
IN_ORDER = ("schedules.md", "limits.md", "jobs.md", "processors.md", "dashboard.md")
"""The how-to guides whose `sh` blocks are recipes; later ones use definitions of earlier ones."""

HAS_HANDLERS = """
from hascheduler.processor import Handlers
from mine import handlers
assert isinstance(handlers, Handlers)
"""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.timeout(900)  # dozens of commands
async def test_each_recipe_works_as_it_stands(url: str, tmp_path: Path) -> None:
    found = [recipe for page in IN_ORDER for recipe in blocks(f"docs/how-to/{page}", "sh")]
    assert len(found) > 30
    for recipe in found:
        await run(url, tmp_path, "bash", "-euc", recipe)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/index.md", "docs/how-to/processors.md"])
async def test_each_processor_has_its_handler(page: str, url: str, tmp_path: Path) -> None:
    programs = blocks(page, "python")
    assert programs
    for program in programs:
        (tmp_path / "mine.py").write_text(program, encoding="utf-8")
        await run(url, tmp_path, sys.executable, "-B", "-c", HAS_HANDLERS)


async def test_every_guide_is_run() -> None:
    """No `sh` block stands on a page that nothing runs."""
    run_here = {"README.md", "docs/tutorial/index.md", "docs/how-to/clients.md"}
    run_here |= {f"docs/how-to/{page}" for page in IN_ORDER}
    pages = {str(page.relative_to(ROOT)) for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))}
    assert {page for page in pages if blocks(page, "sh")} == run_here


async def test_code_works_as_it_stands(url: str, world: World, tmp_path: Path) -> None:
    [program] = blocks("docs/how-to/clients.md", "python")
    [request] = blocks("docs/how-to/clients.md", "sh")
    working = asyncio.create_task(have_all_jobs_succeed(world))
    try:
        output = await run(url, tmp_path, sys.executable, "-c", program)
        assert output.splitlines()[:2] == ["answer", "2 0"]
        assert "'path': 'priority'" in output
        assert '"state":"' in await run(url, tmp_path, "bash", "-euc", request)
    finally:
        working.cancel()


async def run(url: str, folder: Path, *command: str) -> str:
    status, output = await typed(*command, folder=folder, environment={"HASCHEDULER_URL": url}, limit_s=PATIENCE_S)
    assert status == 0, f"{command[-1]}\n{output}"
    assert "urn:hascheduler:problem" not in output, f"{command[-1]}\n{output}"
    return output


async def have_all_jobs_succeed(world: World) -> None:
    """As processors would."""
    while True:
        for job in world.everything()[Collection.JOBS]:
            if job["state"] == "pending":
                world.rewrite(Collection.JOBS, job["_id"], state="succeeded", finished_at_ms=NOW, result="answer")
                world.view.waiters.notify(job["_id"])
        await asyncio.sleep(0.01)  # no signal says that there is a job
