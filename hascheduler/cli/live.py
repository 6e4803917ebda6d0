"""``--watch``: the same picture again every second, in place, until Ctrl-C."""

import time
from collections.abc import Callable

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from hascheduler.cli.tables import console
from hascheduler.errors import InvalidInput, WorldError

_WATCH_EVERY_S = 1.0


def show(picture: Callable[[], RenderableType], *, watch: bool) -> None:
    """Print ``picture()`` once, or keep showing what it gives."""
    if not watch:
        console().print(picture())
        return
    with Live(picture(), console=console(), screen=True, auto_refresh=False) as live:
        while True:
            time.sleep(_WATCH_EVERY_S)
            try:
                live.update(picture(), refresh=True)
            except WorldError as error:  # it may come back, and whoever watches wants to see it
                live.update(Text(str(error), style="red"), refresh=True)


def not_both(*, as_json: bool, watch: bool) -> None:
    if as_json and watch:
        raise InvalidInput(("--watch",), "can't be had with --json", "one of the two")
