"""Whether one more job may be written: asked by whoever submits, right before the write."""

from typing import Protocol

from hascheduler.model.definition import RateLimit

Path = tuple[str | int, ...]


class Admission(Protocol):
    async def admit(self, tenant: str, jobs: int, path: Path = ("jobs",)) -> None:
        """Return if that many more jobs of the tenant may be written now; a refusal has written nothing.

        `TooMany` where the tenant has asked for too much, `Overloaded` where all together have; both say when to come
        again. `InvalidInput` about ``path`` where so many at once will never be let in; `StoreUnavailable` as
        everywhere. What is let in counts as waiting until the stream has shown it, or `not_new` takes it back.
        """
        ...

    def not_new(self, tenant: str, jobs: int) -> None:
        """So many of those that were let in turned out to be there already, or were not written."""
        ...


class BucketStore(Protocol):
    """Token buckets, one a tenant, for all replicas together."""

    async def take(self, tenant: str, limit: RateLimit, tokens: int) -> int:
        """0: taken. Otherwise nothing was taken, and it is how many milliseconds until the bucket holds so many.

        A bucket begins full, and anew when its limit is another. ``tokens`` are at most ``limit.count``. After an
        unknown answer they may be gone.
        """
        ...
