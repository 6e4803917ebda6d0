"""Says which shard it was that did not answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from hascheduler.errors import InvalidInput, StoreUnavailable, Unreachable


@contextmanager
def outages_of(shard: str) -> Iterator[None]:
    """An outage within has the shard's name before what it says."""
    try:
        yield
    except Unreachable as error:
        mistake = error.mistake
        named = InvalidInput(mistake.path, f"shard {shard}: {mistake.problem}", mistake.expected)
        raise Unreachable(named, stays=error.stays) from error
    except StoreUnavailable as error:
        raise StoreUnavailable(f"shard {shard}: {error}") from error
