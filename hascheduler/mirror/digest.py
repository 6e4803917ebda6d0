"""A running fingerprint of a set of documents: equal sets have equal digests, in whatever order they were built.

Each (collection, id, revision) is hashed to 64 bits and the hashes are added modulo 2**64, so putting, replacing and
removing one costs the same however many there are. The multiset hash by addition: Clarke et al., Incremental Multiset
Hash Functions and Their Application to Memory Integrity Checking, ASIACRYPT 2003. Against accidents, not against
malice.

Replicas of neighbouring releases show digests beside each other: the formula does not change between releases.
"""

from hashlib import blake2b

_MODULUS = 1 << 64


class Digest:
    """The sum of the hashes of all members; owns nothing else."""

    __slots__ = ("_sum",)

    def __init__(self) -> None:
        self._sum = 0

    def replace(self, member: str, before: int | None, after: int | None) -> None:
        """The revision of ``member`` was ``before`` and is ``after`` now; None: it was, or is, no member."""
        if before != after:
            self._sum = (self._sum + _hash(member, after) - _hash(member, before)) % _MODULUS

    def __str__(self) -> str:
        return f"{self._sum:016x}"


def _hash(member: str, revision: int | None) -> int:
    if revision is None:
        return 0
    text = f"{member}/{revision}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
