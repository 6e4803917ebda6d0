"""README and tutorial as a reader types them, one after the other, beside one `hascheduler dev`."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from hascheduler.embedded.children import free_port
from tests.system.readme.test_recipes import ROOT
from tests.system.terminal import Printing, typed

LIMIT_S = 180
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


class Reader:
    """`dev` does not print the variables of servers that are set already, as here: those are in ``environment``."""

    def __init__(self, folder: Path, environment: Mapping[str, str], exports: str) -> None:
        self.folder = folder
        self.environment = environment
        self.exports = exports

    def script(self, page: str) -> str:
        """What a reader of the page types: programs are saved, and exports are those that `dev` has printed."""
        return "\n".join(self._typed((ROOT / page).read_text(encoding="utf-8")))

    def _typed(self, text: str) -> Iterator[str]:
        yield "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"
        for language, block in _BLOCK.findall(text):
            if language == "python":
                yield f"cat > mine.py <<'PYTHON'\n{block}PYTHON"
            elif language == "sh":
                yield block
            elif not language:
                for line in block.splitlines():
                    if line.startswith("export "):
                        yield self.exports
                    elif line.startswith(("hascheduler processor mine", "hascheduler job submit")):
                        yield line

    async def types(self, script: str) -> None:
        status, output = await typed(
            "bash", "-euc", script, folder=self.folder, environment=self.environment, limit_s=LIMIT_S
        )
        assert status == 0, f"{script}\n{output}"


@pytest.fixture
async def reader(tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str) -> AsyncIterator[Reader]:
    """Beside a system that `dev` has started, in an empty folder."""
    servers = {"MONGODB_URI": mongodb_uri, "AMQP_URL": amqp_url, "DATABASE": database_name, "TRANSPORT": "rabbitmq"}
    environment = {f"HASCHEDULER_{name}": value for name, value in servers.items()}
    options = ("--port", str(free_port()), "--replicas", "1", "--processors", "1", "--folder", "run")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hascheduler", "dev", *options),
        cwd=tmp_path, env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        printed_url = await Printing(process, LIMIT_S).prints(r"export HASCHEDULER_URL=.*\n")
        draining = asyncio.create_task(process.stdout.read())
        yield Reader(tmp_path, environment, printed_url[0])
        process.send_signal(signal.SIGINT)
        await draining
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.timeout(400)  # dozens of commands
async def test_pages_work_as_they_stand_one_after_the_other(reader: Reader) -> None:
    for page in ("README.md", "docs/tutorial/index.md"):
        await reader.types(reader.script(page))
