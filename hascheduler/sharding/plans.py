"""Which slots are to move, as people ask for it: until all shards have as many, or those of some tenants to one."""

from collections.abc import Mapping, Sequence

from hascheduler.errors import InvalidInput
from hascheduler.model.routing import SLOT_COUNT, Routing, slot_of
from hascheduler.model.values.error_texts import quoted


def even_moves(routing: Routing) -> Mapping[int, int]:
    """The fewest moves after which no shard has two slots more than another, by slot; those that move already stay on
    their way."""
    there = [routing.goal_of(slot) for slot in range(SLOT_COUNT)]
    slots_of = {index: [slot for slot in range(SLOT_COUNT) if there[slot] == index] for index in _indexes(routing)}
    least, more = divmod(SLOT_COUNT, len(routing.shards))
    # Those that have most keep one more, so that fewer move.
    by_size = sorted(slots_of, key=lambda index: (-len(slots_of[index]), index))
    wanted = {index: least + (place < more) for place, index in enumerate(by_size)}
    free = [
        slot
        for index, slots in slots_of.items()
        for slot in [slot for slot in slots if routing.is_at_rest(slot)][: max(len(slots) - wanted[index], 0)]
    ]
    moves: dict[int, int] = {}
    for index, slots in slots_of.items():
        for _ in range(wanted[index] - len(slots)):
            if free:
                moves[free.pop()] = index
    return moves


def moves_to(routing: Routing, shard: str, tenants: Sequence[str] = (), slots: Sequence[int] = ()) -> Mapping[int, int]:
    """The slots of those tenants, and those slots, to that shard. `InvalidInput` where there is no such shard or slot,
    or one moves already."""
    if shard not in routing.shards:
        raise InvalidInput(("--to",), f"there is no shard {quoted(shard)}", f"one of {', '.join(routing.shards)}")
    to = routing.shards.index(shard)
    for slot in slots:
        if not 0 <= slot < SLOT_COUNT:
            raise InvalidInput(("--slot",), f"{slot}", f"0 to {SLOT_COUNT - 1}")
    wanted = {**{slot_of(tenant): to for tenant in tenants}, **dict.fromkeys(slots, to)}
    for slot in wanted:
        if not routing.is_at_rest(slot):
            there = routing.shards[routing.goal_of(slot)]
            raise InvalidInput(("--slot",), f"{slot} moves to {there}", "one that rests: wait until it is there")
    return {slot: to for slot, to in wanted.items() if routing.shard_of_slot[slot] != to}


def slot_counts(routing: Routing, moves: Mapping[int, int] | None = None) -> Sequence[int]:
    """How many slots each shard has once everything is where it moves to, ``moves`` too."""
    placed = [(moves or {}).get(slot, routing.goal_of(slot)) for slot in range(SLOT_COUNT)]
    return [placed.count(index) for index in _indexes(routing)]


def _indexes(routing: Routing) -> range:
    return range(len(routing.shards))
