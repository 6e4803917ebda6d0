"""The README's recipes and programs, each run as it stands, in the order of the page."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from hascheduler.model.collection import Collection
from tests.api.doubles import NOW, World

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


def blocks(section: str, language: str) -> list[str]:
    page = (ROOT / "README.md").read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.timeout(900)  # dozens of commands
async def test_each_recipe_works_as_it_stands(url: str, tmp_path: Path) -> None:
    found = blocks("Recipes", "sh")
    assert len(found) > 10
    for recipe in found:
        await run(url, tmp_path, "bash", "-euc", recipe)


async def test_code_works_as_it_stands(url: str, world: World, tmp_path: Path) -> None:
    [program] = blocks("Use it from your code", "python")
    [request] = blocks("Use it from your code", "sh")
    working = asyncio.create_task(have_all_jobs_succeed(world))
    try:
        output = await run(url, tmp_path, sys.executable, "-c", program)
        assert output.splitlines()[:2] == ["answer", "2 0"]
        assert "FieldProblem(path='priority'" in output
        assert '"state":"' in await run(url, tmp_path, "bash", "-euc", request)
    finally:
        working.cancel()


async def run(url: str, folder: Path, *command: str) -> str:
    commands = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "HASCHEDULER_URL": url, "COLUMNS": "120"}
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, env=environment, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(PATIENCE_S):
        read, _ = await process.communicate()
    output = read.decode()
    assert process.returncode == 0, f"{command[-1]}\n{output}"
    assert "urn:hascheduler:problem" not in output, f"{command[-1]}\n{output}"
    return output


async def have_all_jobs_succeed(world: World) -> None:
    """As processors would."""
    while True:
        for job in world.everything()[Collection.JOBS]:
            if job["state"] == "pending":
                world.rewrite(Collection.JOBS, job["_id"], state="succeeded", finished_at_ms=NOW, result="answer")
                world.view.bells.ring(job["_id"])
        await asyncio.sleep(0.01)  # nobody tells when there is a job
