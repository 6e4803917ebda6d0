"""What goes wrong. `ROWS` names every row; each is a small function in the file of what it troubles."""

from collections.abc import Mapping

from tests.chaos.row import Row
from tests.chaos.rows import brokers, clocks, databases, failpoints, leaders, lines, processors, replicas, shards

_ROOMS = (leaders, failpoints, replicas, databases, lines, brokers, processors, clocks, shards)
ROWS: Mapping[str, Row] = {row.name: row for room in _ROOMS for row in room.ROWS}
