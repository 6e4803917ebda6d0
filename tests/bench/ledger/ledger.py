"""The ledger as a whole, for people and machines: what was spent at rest and under each load, several runs as one."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group

from tests.bench.ledger.accounts import Span, as_json, summed
from tests.bench.ledger.tables import tables_of


@dataclass(frozen=True, slots=True)
class Ledger:
    rest: Span
    loads: tuple[Span, ...]

    @classmethod
    def of(cls, runs: Sequence[Sequence[Span]]) -> "Ledger":
        """Each run has the same spans, the rest first."""
        rest, *loads = (summed(spans) for spans in zip(*runs, strict=True))
        return cls(rest, tuple(loads))

    def as_json(self) -> dict[str, Any]:
        """By label."""
        return {span.label: as_json(span, self.rest) for span in (self.rest, *self.loads)}

    def tables(self) -> Iterator[Group]:
        return tables_of(self.rest, self.loads)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(self.as_json(), indent=1) + "\n")
        os.replace(beside, path)
