"""What `hascheduler dev` makes of processes that end and of files that change, without either."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hascheduler.cli.run import dev
from tests.unit.cli.invoking import invoke


class Ending:
    """A process that ends at once with this status, or runs until it is told to end."""

    log = "its log"

    def __init__(self, code: int | None) -> None:
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if code is not None:
            self._code.set_result(code)

    @property
    def running(self) -> bool:
        return not self._code.done()

    def signal(self, number: int) -> None:
        self._code.set_result(-number)

    async def wait(self) -> int:
        return await asyncio.shield(self._code)


class Kept:
    """A processor of which each start ends with the next of ``codes``; the last one runs."""

    def __init__(self, codes: list[int | None], *, watched: bool) -> None:
        self.codes = codes
        self.processors: dict[str, Any] = {}
        self.lines: list[str] = []
        self.attended = dev._Attended(self, lambda line, **_: self.lines.append(line), is_watched=watched)  # type: ignore[arg-type]

    async def start(self, name: str) -> None:
        self.processors[name] = Ending(self.codes.pop(0))

    async def run(self) -> None:
        await self.start("p")
        await self.attended.keep("p", self.processors, self.start)

    async def until(self, *words: str) -> None:
        async with asyncio.timeout(10):
            while [any(word in line for line in self.lines) for word in words] != [True] * len(words):  # noqa: ASYNC110
                await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dev, "_PAUSE_S", 0.0)
    monkeypatch.setattr(dev, "_LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(dev, "_STARTS_MAX", 3)


@pytest.mark.parametrize("watched", [True, False])
async def test_a_process_that_ends_starts_again_and_in_the_end_is_left(*, watched: bool) -> None:
    kept = Kept([-9, 1, 1], watched=watched)
    await kept.run()
    assert kept.lines == [
        "p ended with -9 and starts again in 0.0 s; see its log",
        "p ended with 1 and starts again in 0.0 s; see its log",
        "p has ended 3 times in a row and is left so; see its log",
    ]
    assert not kept.codes


async def test_processors_begin_anew_for_a_change_and_wait_for_one_after_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("")
    kept = Kept([None, 2, None], watched=True)
    async with asyncio.TaskGroup() as group:
        keeping = group.create_task(kept.run())
        watching = group.create_task(kept.attended.reload([tmp_path]))
        names = (tmp_path / f"new_{number}.py" for number in count())
        for told in (["p waits for a change of your files"], []):
            lines = len(kept.lines)
            while len(kept.lines) == lines:
                next(names).touch()  # until it is seen: the first look may come after the first change
                await asyncio.sleep(0.01)
            await kept.until(*told)
        async with asyncio.timeout(10):
            while kept.codes:  # noqa: ASYNC110
                await asyncio.sleep(0)
        keeping.cancel()
        watching.cancel()


def test_files_of_environments_and_hidden_folders_are_not_looked_at(tmp_path: Path) -> None:
    for name in (
        "shop.py",
        "inner/tasks.py",
        "data.txt",
        ".git/hook.py",
        "env/lib/a.py",
        "env/pyvenv.cfg",
        "__x__/b.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(dev._files([tmp_path])) == [str(tmp_path / "inner/tasks.py"), str(tmp_path / "shop.py")]


def test_a_module_is_found_without_its_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text("raise ImportError")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").write_text("raise ImportError")
    for module, folder in (("shop:mine", tmp_path), ("pack.tasks", tmp_path / "pack"), ("nowhere", tmp_path)):
        assert dev._folder_of(module) == folder, module


def test_there_is_nothing_to_reload_without_a_module() -> None:
    ended = invoke("dev", "--reload")
    assert (ended.status, ended.err) == (
        2, "hascheduler: --reload: applies only to modules of your own; expected MODULE with it\n",
    )  # fmt: skip
