"""A running fingerprint of a set of documents: equal sets have equal digests, in whatever order they were built.

Each (collection, id, revision) is hashed to 64 bits and the hashes are added modulo 2**64, so putting and removing one
costs the same however many there are. The multiset hash by addition: Clarke et al., Incremental Multiset Hash
Functions and Their Application to Memory Integrity Checking, ASIACRYPT 2003. Against accidents, not against malice.
"""

from hashlib import blake2b

_MODULUS = 1 << 64


class Digest:
    """The sum of the hashes of all members; owns nothing else."""

    __slots__ = ("_sum",)

    def __init__(self) -> None:
        self._sum = 0

    def add(self, member: str) -> None:
        self._sum = (self._sum + _hash(member)) % _MODULUS

    def remove(self, member: str) -> None:
        self._sum = (self._sum - _hash(member)) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:016x}"


def _hash(member: str) -> int:
    return int.from_bytes(blake2b(member.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
