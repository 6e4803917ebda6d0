"""Things that are almost what they should be: by chance, a message's bytes or a document's fields."""

from random import Random
from typing import Any

_JUNK: tuple[Any, ...] = (
    None, "", "x" * 5_000, -1, 2**62, 1.5, float("nan"), True, [], {}, [1, {"a": None}], {"$where": "1"}, b"\x00\xff",
    "\x00", "−1", {"a": {"b": {"c": []}}},
)  # fmt: skip


def mutated_bytes(body: bytes, chance: Random) -> bytes:
    """Cut, flipped, doubled, or something else altogether."""
    match chance.randrange(5):
        case 0:
            return body[: chance.randrange(len(body))]
        case 1:
            place = chance.randrange(len(body))
            return body[:place] + bytes([body[place] ^ (1 << chance.randrange(8))]) + body[place + 1 :]
        case 2:
            return body + body
        case 3:
            return chance.randbytes(chance.randrange(200))
        case _:
            return chance.choice((b"", b"null", b"[]", b"{}", b'"run"', b"9" * 5_000, b"[" * 3_000))


def mutated_document(document: dict[str, Any], chance: Random) -> dict[str, Any]:
    """One to three of its fields are gone, or are what they can't be; its id stays."""
    names = [name for name in document if name != "_id"]
    mutated = dict(document)
    for name in chance.sample(names, min(len(names), chance.randrange(1, 4))):
        if chance.random() < 0.3:
            del mutated[name]
        else:
            mutated[name] = chance.choice(_JUNK)
    return mutated
