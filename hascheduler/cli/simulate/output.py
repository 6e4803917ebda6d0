"""Pictures of runs, written to a file; and a progress bar."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from hascheduler.errors import InvalidInput
from hascheduler.simulate.outcome import RunOutcome

_PATIENCE_S = 1.0

Draw = Callable[[Sequence[RunOutcome]], bytes]


def drawing(out: str) -> Draw:
    """Draws in the format that the name of the file asks for; `InvalidInput` where that can't be done here."""
    format = Path(out).suffix.removeprefix(".").lower()
    try:
        from hascheduler.simulate.plot import FORMATS, draw
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "matplotlib":
            raise
        raise InvalidInput(("--plot",), "matplotlib is not installed", "pip install 'hascheduler[plot]'") from None
    if format not in FORMATS:
        expected = " or ".join(f"NAME.{each}" for each in FORMATS)
        raise InvalidInput(("--plot",), f"{out[:64]!r} is no kind of picture", expected)
    return lambda outcomes: draw(outcomes, format)


def write_picture(out: str, picture: bytes) -> None:
    try:
        Path(out).write_bytes(picture)
    except OSError as error:
        raise InvalidInput(("--plot",), f"{out}: {error.strerror}", "a file that can be written") from None


class ProgressBar:
    """A bar on standard error, once the run has taken a second; none where that is no terminal."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._wanted = sys.stderr.isatty()
        self._began_at = monotonic()

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, name: str) -> Callable[[int, int], None]:
        """What the run of that name is to call."""
        self._task = None

        def tell(done: int, total: int) -> None:
            if not self._wanted or monotonic() - self._began_at < _PATIENCE_S:
                return
            if self._progress is None:
                self._progress = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeElapsedColumn(),
                    console=Console(stderr=True),
                    transient=True,
                )
                self._progress.start()
            if self._task is None:
                self._task = self._progress.add_task(name, total=total)
            self._progress.update(self._task, completed=done)

        return tell
