"""For how long nothing was decided, as a replica that lives sees the journal grow.

A pod that is deleted goes on leading for as long as its shutdown lets it, so the time from the command says little.
What counts is the gap: from the last entry of the old term that was seen to come, to the first decision of a later one.
"""

import asyncio

from hascheduler.demo.kubernetes.patience import once
from hascheduler.demo.replicas import Replicas
from hascheduler.demo.stage import Leader

_PATIENCE_S = 90.0
_EVERY_S = 0.02
_BARRIER = 2
"""The first entry that is seen of a term may be the one before it began, the next says that it began."""


async def taken_over(api: Replicas, leader: Leader) -> int:
    """Wait until a term after the leader's has decided something, and return the gap in ms.

    Right to within the time of some requests, and never less than what it was.
    """
    loop = asyncio.get_running_loop()
    last_s, last_seq = loop.time(), 0
    first_seq: int | None = None

    async def look() -> float | None:
        nonlocal last_s, last_seq, first_seq
        asked_s = loop.time()
        sight = await api.look(avoid=leader.name)
        seq = (sight.cluster["journal_seq"] or 0) if sight else 0
        now = sight.cluster["leader"] if sight else None
        if now is None:
            return None
        if now["term"] <= leader.term:
            if seq > last_seq:
                last_s, last_seq = asked_s, seq
            return None
        first_seq = seq if first_seq is None else first_seq
        return loop.time() - last_s if seq >= first_seq + _BARRIER else None

    gap_s = await once(
        look, f"a leader after term {leader.term} that decides", patience_s=_PATIENCE_S, every_s=_EVERY_S
    )
    return round(gap_s * 1_000)
