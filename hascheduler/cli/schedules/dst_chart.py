"""Draws the night of a clock change: six hours of real time, under the wall times that clocks show.

::

    23    00    01    ┃03    04    05         clocks go forward: no cell is at 02:30
    ┼─────┼─────┼─────┃●─────┼─────┼─────

    00    01    02    ┃02    03    04         clocks go back: 02:30 is there twice, ○ is where it does not fire
    ┼─────┼─────┼──●──┃┼──○──┼─────┼─────
"""

from collections.abc import Sequence

from rich.text import Text

LEGEND = "● fires   ○ the same wall time again, when it does not"
_CELL_MS = 10 * 60_000
_HOUR_MS = 3_600_000
_CELLS_A_SIDE = 18
_STYLES = {"●": "bold green", "○": "yellow", "┃": "bold"}


def draw_dst_chart(at_ms: int, before_ms: int, after_ms: int, fires_ms: Sequence[int]) -> tuple[Text, Text]:
    """The wall times above, the axis with the fires below; ``before_ms`` and ``after_ms`` are the offsets from UTC."""
    labels = [" "] * (2 * _CELLS_A_SIDE + 3)
    axis = ["─"] * (2 * _CELLS_A_SIDE + 1)
    for cell in range(-_CELLS_A_SIDE, _CELLS_A_SIDE):
        wall_ms = at_ms + cell * _CELL_MS + (before_ms if cell < 0 else after_ms)
        if wall_ms % _HOUR_MS == 0:
            column = _column(cell)
            labels[column : column + 2] = f"{wall_ms // _HOUR_MS % 24:02d}"
            axis[column] = "┼"
    labels[_CELLS_A_SIDE] = axis[_CELLS_A_SIDE] = "┃"
    for cell, mark in _marks(at_ms, after_ms - before_ms, fires_ms).items():
        if -_CELLS_A_SIDE <= cell < _CELLS_A_SIDE:
            axis[_column(cell)] = mark
    return _styled(labels), _styled(axis)


def _column(cell: int) -> int:
    """The change has a column of its own, between cell -1 and cell 0."""
    return cell + _CELLS_A_SIDE + (cell >= 0)


def _styled(characters: Sequence[str]) -> Text:
    return Text.assemble(*((character, _STYLES.get(character, "dim")) for character in characters))


def _marks(at_ms: int, shift_ms: int, fires_ms: Sequence[int]) -> dict[int, str]:
    """What stands in which cell, counted from the change."""
    fired = {(fire_ms - at_ms) // _CELL_MS for fire_ms in fires_ms}
    marks = dict.fromkeys(fired, "●")
    for fire_ms in fires_ms:
        # What fired in the first pass of a doubled hour has a second one, in which nothing fires.
        second = (fire_ms - at_ms - shift_ms) // _CELL_MS
        if shift_ms <= fire_ms - at_ms < 0 and second not in fired:
            marks[second] = "○"
    return marks
