"""A running fingerprint of a set of documents: equal sets have equal digests, in whatever order they were built.

Each (collection, id, revision) is hashed to 64 bits and the hashes are added modulo 2**64, so putting, replacing and
removing one costs the same however many there are. The multiset hash by addition: Clarke et al., Incremental Multiset
Hash Functions and Their Application to Memory Integrity Checking, ASIACRYPT 2003. Against accidents, not against
malice.

Replicas of neighbouring releases show digests beside each other: the formula does not change between releases.
"""

from hashlib import blake2b

_MODULUS = 1 << 64
UNHASHED_MAX = 5_000


class Digest:
    """The sum of the hashes of all members; owner of that, and of the members that are not hashed yet.

    Most members are gone again before the sum is read, and are never hashed.
    """

    __slots__ = ("_sum", "_unhashed")

    def __init__(self) -> None:
        self._sum = 0
        self._unhashed: dict[tuple[str, int], int] = {}
        """How often each is to be added; less than 0: subtracted."""

    def replace(self, member: str, before: int | None, after: int | None) -> None:
        """The revision of ``member`` was ``before`` and is ``after`` now; None: it was, or is, not a member."""
        if before == after:
            return
        if before is not None:
            self._count((member, before), -1)
        if after is not None:
            self._count((member, after), 1)
        if len(self._unhashed) > UNHASHED_MAX:
            self._add_up()

    def __str__(self) -> str:
        self._add_up()
        return f"{self._sum:016x}"

    def _count(self, versioned: tuple[str, int], more: int) -> None:
        count = self._unhashed.pop(versioned, 0) + more
        if count:
            self._unhashed[versioned] = count

    def _add_up(self) -> None:
        for versioned, count in self._unhashed.items():
            self._sum += count * _hash(*versioned)
        self._sum %= _MODULUS
        self._unhashed.clear()


def _hash(member: str, revision: int) -> int:
    text = f"{member}/{revision}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
