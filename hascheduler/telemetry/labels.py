"""Names that callers choose, as labels: bounded, so that no metric grows with whoever submits."""

from collections.abc import Collection, Mapping
from itertools import chain

VALUES_MAX = 100
OTHER = "other"
"""All names that there is no room for, together."""


class BoundedLabel:
    """For counters, which can't forget: the first `VALUES_MAX` names are told as they are, later ones as `OTHER`."""

    def __init__(self, values_max: int = VALUES_MAX) -> None:
        self._values_max = values_max
        self._known: set[str] = set()

    def of(self, name: str) -> str:
        if name in self._known:
            return name
        if len(self._known) >= self._values_max:
            return OTHER
        self._known.add(name)
        return name


class BoundedRows:
    """For gauges: which names are shown now. Who has something to show goes first, then who was shown before."""

    def __init__(self, values_max: int = VALUES_MAX) -> None:
        self._values_max = values_max
        self._shown: dict[str, None] = {}

    def of(
        self, table: Mapping[str, Mapping[str, int]], totals: Mapping[str, int], idle: Collection[str] = ()
    ) -> list[tuple[str, Mapping[str, int]]]:
        """The rows of ``table`` that there is room for, then zeros for ``idle`` names; what is left of ``totals`` comes
        last, as `OTHER`. It looks at no more names than it has room for twice over, however many there are."""
        names: dict[str, None] = {}
        busy, quiet = (name for name in self._shown if name in table), (name for name in self._shown if name in idle)
        for name in chain(busy, table, quiet, idle):
            if len(names) >= self._values_max:
                break
            names[name] = None
        self._shown = names
        rows = [(name, table.get(name, {})) for name in names]
        rest = {key: count - sum(row.get(key, 0) for _, row in rows) for key, count in totals.items()}
        if any(rest.values()):
            rows.append((OTHER, rest))
        return rows
