"""The system's pulse: how many handlers started in each half second, with the kills marked below."""

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from hascheduler.demo.evidence import Effect
from hascheduler.demo.story import Kill

_CELL_MS = 500
_BARS = " ▁▂▃▄▅▆▇█"


def draw_pulse(effects: Sequence[Effect], kills: Sequence[Kill], now_ms: int, *, cells: int) -> Text:
    """Two lines of so many cells, the present at their right end."""
    newest = now_ms // _CELL_MS
    first = newest - cells + 1
    heights = Counter(effect.at_ms // _CELL_MS for effect in effects if effect.at_ms // _CELL_MS >= first)
    highest = max(heights.values(), default=1)
    bars = "".join(_bar(heights[cell], highest) for cell in range(first, newest + 1))
    marked = {kill.at_ms // _CELL_MS for kill in kills}
    marks = "".join("▲" if cell in marked else " " for cell in range(first, newest + 1))
    return Text.assemble((bars, "green"), "\n", (marks, "bold red"))


def _bar(height: int, highest: int) -> str:
    # Rounded up: a cell in which anything started is never empty.
    return _BARS[-(-height * (len(_BARS) - 1) // highest)]
