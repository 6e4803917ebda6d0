"""What a client of the database sent, for tests that look at it."""

from typing import Any

from pymongo.monitoring import CommandListener


class SentCommands(CommandListener):
    """Every command, whole and in order; its first key is its name."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def started(self, event: Any) -> None:
        self.sent.append(dict(event.command))

    def succeeded(self, event: object) -> None: ...

    def failed(self, event: object) -> None: ...

    def taken(self) -> list[dict[str, Any]]:
        """Those since the last call."""
        sent, self.sent = self.sent, []
        return sent
