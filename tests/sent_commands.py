"""The commands that a database client sent, for tests that inspect them."""

from collections.abc import Mapping
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
        """Return the commands since the last call."""
        sent, self.sent = self.sent, []
        return sent


class SentReads(SentCommands):
    """The reads only, in the form that `explain` takes."""

    def started(self, event: Any) -> None:
        kept = ("find", "aggregate", "pipeline", "filter", "sort", "limit", "skip", "projection", "hint", "cursor")
        if event.command_name in ("find", "aggregate"):
            self.sent.append({name: event.command[name] for name in kept if name in event.command})


def stages_of(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all stages of a winning plan."""
    inner = [plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", [])
    if "queryPlan" in plan:
        inner = [plan["queryPlan"]]
    own = [plan] if "stage" in plan else []
    return own + [stage for child in inner for stage in stages_of(child)]
