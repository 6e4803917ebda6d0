"""Which nominal times of a schedule were in force, by what the test itself asked for, and when.

An edit takes force somewhere between the request and its answer. Outside of these *brackets* it is certain what was in
force: a time on the grid has its one verdict, any other has none. Within a bracket a time that both sides have has
one; a time that only one side has may have one. Grids begin in 1970: with every 100 ms the times are multiples of 100.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

STEP_MS = 50
"""Every grid is a multiple of it."""

FIRED, PAUSED = frozenset({"fired"}), frozenset({"paused"})
EITHER = FIRED | PAUSED


@dataclass
class _Span:
    """From ``from_ms`` through ``through_ms`` one of the ``grids`` was in force; None: there was no schedule."""

    from_ms: float
    through_ms: float
    grids: tuple[int | None, ...]
    verdicts: frozenset[str]

    def times(self) -> Iterator[tuple[int, list[bool]]]:
        """Each time that is on a grid, and on which."""
        first_ms = -(-int(self.from_ms) // STEP_MS) * STEP_MS
        for at_ms in range(first_ms, int(self.through_ms) + 1, STEP_MS):
            on = [grid is not None and at_ms % grid == 0 for grid in self.grids]
            if any(on) and at_ms >= self.from_ms:
                yield at_ms, on


@dataclass
class Timeline:
    """Owner of the account of one schedule. All instants are wall times in ms, each edit's after those before it."""

    since_ms: float
    every_ms: int | None = None
    is_paused: bool = False
    _spans: list[_Span] = field(default_factory=list)
    _unsettled: list[_Span] = field(default_factory=list)

    def every(self, before_ms: float, after_ms: float, every_ms: int | None) -> None:
        """It has another trigger now; None: it has ended."""
        assert every_ms != self.every_ms, "that is no edit"
        self._turn(before_ms, after_ms, every_ms)
        # With the trigger goes the chance to catch up with its times since the pause.
        self._settle(PAUSED)

    def paused(self, before_ms: float, after_ms: float) -> None:
        self._turn(before_ms, after_ms, self.every_ms)
        self.is_paused = True

    def resumed(self, before_ms: float, after_ms: float, *, catch_up: bool) -> None:
        self._turn(before_ms, after_ms, self.every_ms)
        self._settle(FIRED if catch_up else PAUSED)
        self.is_paused = False

    def check(self, fired: set[int], passed_over: Sequence[tuple[int, int, int]]) -> None:
        """``passed_over`` are the paused runs: first, last, count. What was in force has one verdict, nothing else has.

        A run tells its ends and its count; so many of the possible times between them must have been passed over.
        """
        assert not self._unsettled, "it is paused still"
        certain: dict[int, frozenset[str]] = {}
        possible: dict[int, frozenset[str]] = {}
        for span in self._spans:
            for at_ms, on in span.times():
                possible[at_ms] = span.verdicts
                if all(on):
                    certain[at_ms] = span.verdicts
        for at_ms in fired:
            assert "fired" in possible.get(at_ms, ()), f"{at_ms} fired, and could be {possible.get(at_ms)}"
        for first_ms, last_ms, count in passed_over:
            inside = [at_ms for at_ms in possible if first_ms <= at_ms <= last_ms]
            assert {first_ms, last_ms} <= set(inside), f"the run from {first_ms} through {last_ms}"
            assert all("paused" in possible[at_ms] for at_ms in inside if at_ms in certain), f"from {first_ms}"
            assert not fired.intersection(inside), f"in the run from {first_ms} times fired too"
            assert len([at_ms for at_ms in inside if at_ms in certain]) <= count <= len(inside)
        for at_ms, verdicts in certain.items():
            is_passed_over = any(first_ms <= at_ms <= last_ms for first_ms, last_ms, _ in passed_over)
            assert (at_ms in fired) != is_passed_over, f"{at_ms} should be {sorted(verdicts)}, fired: {at_ms in fired}"

    def _turn(self, before_ms: float, after_ms: float, every_ms: int | None) -> None:
        assert self.since_ms <= before_ms <= after_ms
        if self.every_ms is not None:
            span = _Span(self.since_ms, before_ms, (self.every_ms,), FIRED)
            self._spans.append(span)
            if self.is_paused:
                self._unsettled.append(span)
        self._spans.append(_Span(before_ms, after_ms, (self.every_ms, every_ms), EITHER))
        self.since_ms, self.every_ms = after_ms, every_ms

    def _settle(self, verdicts: frozenset[str]) -> None:
        for span in self._unsettled:
            span.verdicts = verdicts
        self._unsettled.clear()
