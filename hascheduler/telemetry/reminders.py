"""How often a log tells of an outage that lasts: at once, and then once a minute for each reason."""

_AGAIN_AFTER_MS = 60_000
_REASONS_MAX = 16


class Reminders:
    """Owner of what was told of one agent's outage, and when; times are of one monotonic clock."""

    def __init__(self) -> None:
        self._told_at: dict[str, int] = {}

    def is_due(self, reason: str, now_ms: int) -> bool:
        """Whether ``reason`` is to be told now; if so, it counts as told."""
        told_at = self._told_at.get(reason)
        if told_at is not None and now_ms - told_at < _AGAIN_AFTER_MS:
            return False
        if len(self._told_at) >= _REASONS_MAX:
            self._told_at.clear()
        self._told_at[reason] = now_ms
        return True

    def over(self) -> None:
        """The outage is over: the next one is told at once."""
        self._told_at.clear()
