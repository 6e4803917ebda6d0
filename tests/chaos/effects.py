"""What the handlers left behind, read back: runs with their beginnings and ends, by the one clock of this machine."""

from pathlib import Path

import orjson

from tests.checkers.evidence import Effect


def read_effects(sink: Path, epoch_ms: int) -> list[Effect]:
    """In the order of their beginnings; times in whole milliseconds, as those of the database are."""
    effects: list[Effect] = []
    running: dict[tuple[str, int, str], Effect] = {}
    if not sink.exists():
        return effects
    for line in sink.read_bytes().splitlines():
        told = orjson.loads(line)
        key = (told["job"], told["attempt"], told["process"])
        at_s = (told["wall_ns"] // 1_000_000 - epoch_ms) / 1_000
        if told["what"] == "begin":
            running[key] = Effect(*key, began_s=at_s)
            effects.append(running[key])
        else:
            running[key].ended_s = at_s
    return effects
