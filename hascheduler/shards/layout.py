"""Which shard has which partition, which partitions move, and how far each move has come.

The home has one such document. Every change is a compare-and-set on ``epoch``::

    at rest ─► moving ─► moving, frozen ─► leaving, frozen ─► leaving ─► at rest
                  ▲___________│ thawed

A *moving* partition is still in its old shard; from *leaving* on it is in the new one. It is *frozen* while live
documents of it may be in both shards: otherwise one deleted in one shard would come back from the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from hascheduler.errors import InvalidInput
from hascheduler.model.partition import PARTITION_COUNT, SHARDS_MAX, partition_of
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.fields import Document, is_integer, positive

LAYOUT_ID = "routing"


class PartitionMove(NamedTuple):
    """A partition on its way to shard ``to`` since epoch ``began``, which marks the copies of this move."""

    to: int
    began: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The shard of each partition: ``shards`` are names, the home first; ``shard_of`` has a shard's index for each.

    ``moving`` has the moves under way. ``frozen`` partitions refuse writes for about a second. ``leaving`` has, for
    each partition that has arrived, the index of the shard that still holds something of it.
    """

    epoch: int
    shards: tuple[str, ...]
    shard_of: tuple[int, ...]
    moving: Mapping[int, PartitionMove] = field(default_factory=dict, hash=False)
    frozen: frozenset[int] = frozenset()
    leaving: Mapping[int, int] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.shards) <= SHARDS_MAX:
            raise InvalidInput(("shards",), f"{len(self.shards)} shards", f"1 to {SHARDS_MAX}")
        if len(set(self.shards)) < len(self.shards):
            raise InvalidInput(("shards",), "a name occurs twice", "different names")
        if len(self.shard_of) != PARTITION_COUNT:
            raise InvalidInput(("partitions",), f"{len(self.shard_of)} partitions", f"{PARTITION_COUNT}")
        goals = {partition: move.to for partition, move in self.moving.items()}
        places = {"partitions": dict(enumerate(self.shard_of)), "moving": goals, "leaving": self.leaving}
        for path, partition, index in ((path, *pair) for path, shards in places.items() for pair in shards.items()):
            if not (0 <= partition < PARTITION_COUNT and 0 <= index < len(self.shards)):
                problem = f"partition {partition}, shard {index}"
                raise InvalidInput((path,), problem, f"one of {len(self.shards)} shards")
        if not self.frozen <= self.moving.keys() | self.leaving.keys():
            raise InvalidInput(("frozen",), "a partition at rest", "some of those that move")

    @classmethod
    def even(cls, shards: Sequence[str]) -> "Layout":
        """Return the first layout of a deployment: neighbours go to different shards."""
        return cls(1, tuple(shards), tuple(partition % len(shards) for partition in range(PARTITION_COUNT)))

    @classmethod
    def all_at_home(cls, shards: Sequence[str]) -> "Layout":
        """Return the first layout of a deployment that had one shard until now."""
        return cls(1, tuple(shards), (0,) * PARTITION_COUNT)

    # The next layout

    def extended(self, shards: Sequence[str]) -> "Layout":
        """Add shards, which have no partition yet."""
        return replace(self, epoch=self.epoch + 1, shards=tuple(shards))

    def beginning(self, moves: Mapping[int, int]) -> "Layout":
        """Begin these moves; raise `InvalidInput` for a partition that already moves."""
        for partition in moves:
            if not self.is_at_rest(partition):
                there = self.shards[self.goal_of(partition)]
                raise InvalidInput(("--partition",), f"{partition} already moves to {there}", "one that is at rest")
        epoch = self.epoch + 1
        begun = {each: PartitionMove(to, epoch) for each, to in moves.items() if self.shard_of[each] != to}
        return replace(self, epoch=epoch, moving={**self.moving, **begun})

    def freezing(self, partition: int) -> "Layout":
        return replace(self, epoch=self.epoch + 1, frozen=self.frozen | {partition})

    def thawed(self, partition: int) -> "Layout":
        return replace(self, epoch=self.epoch + 1, frozen=self.frozen - {partition})

    def arrived(self, partition: int) -> "Layout":
        """Place the partition in its new shard; what remains of it leaves the old one."""
        placed, moving = list(self.shard_of), dict(self.moving)
        placed[partition] = moving.pop(partition).to
        leaving = {**self.leaving, partition: self.shard_of[partition]}
        return replace(self, epoch=self.epoch + 1, shard_of=tuple(placed), moving=moving, leaving=leaving)

    def emptied(self, partition: int) -> "Layout":
        """End the move: the old shard holds nothing of the partition any more."""
        left = {each: source for each, source in self.leaving.items() if each != partition}
        return replace(self, epoch=self.epoch + 1, frozen=self.frozen - {partition}, leaving=left)

    # Questions

    def index_of(self, tenant: str) -> int:
        """Return the index of the shard that counts for that tenant."""
        return self.shard_of[partition_of(tenant)]

    def is_at_rest(self, partition: int) -> bool:
        return partition not in self.moving and partition not in self.leaving

    def is_frozen(self, partition: int) -> bool:
        return partition in self.frozen

    def goal_of(self, partition: int) -> int:
        """Return the index of the shard that the partition is in, or moves to."""
        move = self.moving.get(partition)
        return self.shard_of[partition] if move is None else move.to


# Plans


def even_moves(layout: Layout) -> Mapping[int, int]:
    """Return the fewest moves, by partition, after which no shard has two partitions more than another.

    Partitions that already move stay on their way.
    """
    held: dict[int, list[int]] = {index: [] for index in range(len(layout.shards))}
    for partition in range(PARTITION_COUNT):
        held[layout.goal_of(partition)].append(partition)
    least, more = divmod(PARTITION_COUNT, len(layout.shards))
    by_size = sorted(held, key=lambda index: (-len(held[index]), index))
    wanted = {index: least + (place < more) for place, index in enumerate(by_size)}  # the largest shards keep one more
    free: list[int] = []
    for index, partitions in held.items():
        free += [each for each in partitions if layout.is_at_rest(each)][: max(len(partitions) - wanted[index], 0)]
    lacking = [index for index in held for _ in range(wanted[index] - len(held[index]))]
    return dict(zip(reversed(free), lacking, strict=False))


def moves_to(
    layout: Layout, shard: str, tenants: Sequence[str] = (), partitions: Sequence[int] = ()
) -> Mapping[int, int]:
    """Return the moves that bring these partitions, and those of these tenants, to that shard.

    Raise `InvalidInput` for an unknown shard or partition, and for one that already moves.
    """
    if shard not in layout.shards:
        raise InvalidInput(("--to",), f"there is no shard {quoted(shard)}", f"one of {', '.join(layout.shards)}")
    for partition in partitions:
        if not 0 <= partition < PARTITION_COUNT:
            raise InvalidInput(("--partition",), f"{partition}", f"0 to {PARTITION_COUNT - 1}")
    to = layout.shards.index(shard)
    begun = layout.beginning(dict.fromkeys({*map(partition_of, tenants), *partitions}, to))
    return dict.fromkeys(begun.moving.keys() - layout.moving.keys(), to)


def partition_counts(layout: Layout, moves: Mapping[int, int] | None = None) -> Sequence[int]:
    """Return how many partitions each shard has once everything has arrived, ``moves`` included."""
    placed = [(moves or {}).get(each, layout.goal_of(each)) for each in range(PARTITION_COUNT)]
    return [placed.count(index) for index in range(len(layout.shards))]


# The stored form


def encode_layout(layout: Layout) -> dict[str, Any]:
    under_way: dict[str, Any] = {
        "moving": [[partition, *move] for partition, move in sorted(layout.moving.items())],
        "frozen": sorted(layout.frozen),
        "leaving": [list(pair) for pair in sorted(layout.leaving.items())],
    }
    return {
        "_id": LAYOUT_ID,
        "v": WRITTEN_VERSION,
        "epoch": layout.epoch,
        "shards": list(layout.shards),
        "partitions": list(layout.shard_of),
        **{name: rows for name, rows in under_way.items() if rows},
    }


def decode_layout(fields: Document) -> Layout:
    """Return the layout; raise `InvalidInput` if the document is malformed."""
    require_known_version(fields)
    shards = _listed(fields, "shards", None, lambda each: isinstance(each, str) and each != "", "names")
    placed = _listed(fields, "partitions", None, is_integer, "indexes of shards")
    moving = _listed(fields, "moving", [], lambda row: _is_row(row, 3), "rows of 3 numbers")
    frozen = _listed(fields, "frozen", [], is_integer, "partitions")
    leaving = _listed(fields, "leaving", [], lambda row: _is_row(row, 2), "rows of 2 numbers")
    moves = {partition: PartitionMove(to, began) for partition, to, began in moving}
    return Layout(positive(fields, "epoch"), tuple(shards), tuple(placed), moves, frozenset(frozen), dict(leaving))


def _listed(fields: Document, name: str, default: object, is_one: Callable[[Any], bool], what: str) -> list[Any]:
    value = fields.get(name, default)
    if not isinstance(value, list) or not all(map(is_one, value)):
        raise InvalidInput((name,), f"{str(value)[:64]}", f"a list of {what}")
    return value


def _is_row(row: object, width: int) -> bool:
    return isinstance(row, list) and len(row) == width and all(map(is_integer, row))
