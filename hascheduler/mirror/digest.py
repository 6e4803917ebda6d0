"""A running fingerprint of a set of documents: equal sets have equal digests, in whatever order they were built.

Each (collection, id, revision) is hashed to 64 bits and the hashes are added modulo 2**64 (Clarke et al., Incremental
Multiset Hash Functions, 2003). Replicas of neighbouring releases show their digests: the formula stays.
"""

from hashlib import blake2b

UNHASHED_MAX = 5_000


class Digest:
    """Owner of the sum of the hashes of all members, and of those not hashed yet: most are gone before it is read."""

    __slots__ = ("_sum", "_unhashed")

    def __init__(self) -> None:
        self._sum = 0
        self._unhashed: dict[tuple[str, int], int] = {}  # how often each is to be added; less than 0: subtracted

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
        for (member, revision), count in self._unhashed.items():
            text = f"{member}/{revision}".encode("utf-8", "surrogatepass")
            self._sum += count * int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
        self._sum %= 1 << 64
        self._unhashed.clear()
