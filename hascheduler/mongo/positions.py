"""Where in the stream an event is: its cluster time, and which of the events of that time it is.

A write has a time of its own, but the writes of a transaction share theirs, and so do documents that were inserted at
once where the server replicates those as a transaction. Their order is the same in every stream.
"""

from bson import Timestamp

from hascheduler.model.event import EVENTS_OF_A_CHANGE_MAX, number_of, position


def position_after(last: str, moment: Timestamp | None) -> str:
    """The position of the event that follows the one at ``last`` ("": the first one), and happened at ``moment``.

    An event without a time is none of a document, and has no position of its own.
    """
    if moment is None:
        return last
    alone = position(moment.time, moment.inc)
    if not last.startswith(alone):
        return alone
    return position(moment.time, moment.inc, number_of(last) + EVENTS_OF_A_CHANGE_MAX)
