"""The README's recipes, each run as it stands, in the order of the page."""

import asyncio
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


def recipes() -> list[str]:
    page = (ROOT / "README.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", page, re.DOTALL)


async def test_each_recipe_works_as_it_stands(url: str, tmp_path: Path) -> None:
    found = recipes()
    assert len(found) > 10
    commands = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "HASCHEDULER_URL": url, "COLUMNS": "120"}
    for recipe in found:
        process = await asyncio.create_subprocess_exec(
            "bash", "-euc", recipe, cwd=tmp_path, env=environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE_S):
            output, _ = await process.communicate()
        assert process.returncode == 0, f"{recipe}\n{output.decode()}"
        assert "urn:hascheduler:problem" not in output.decode(), f"{recipe}\n{output.decode()}"
