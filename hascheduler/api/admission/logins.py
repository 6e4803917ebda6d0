"""The limit on how often one token may log in to the dashboard.

Each login writes to the database and to every mirror, and any role may log in. So a token has a burst, and then one
login per interval, at each replica.
"""

from hascheduler.api.middleware.audit import Samplers
from hascheduler.errors import TooMany
from hascheduler.model.values.instants import MonoMs

SESSIONS_MAX = 32
"""How many sessions of one token may be live at once. A login beyond that ends the oldest."""
BURST = 30
EVERY_MS = 2_000


class Logins(Samplers):
    """Owner of what each token has left, by its public id."""

    def __init__(self) -> None:
        super().__init__(BURST, EVERY_MS)

    def require(self, token: str, now: MonoMs) -> None:
        """Count one more login; raise `TooMany` if the token has none left."""
        if self.take(token, now) is None:
            raise TooMany("this token has logged in too often", EVERY_MS // 1_000)
