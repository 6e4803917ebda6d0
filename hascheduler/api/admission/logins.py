"""How often one token may log in to the dashboard.

Each login writes to the database and to every mirror, and any role may do it. So a token has a burst, and then one
login in a while, at each replica.
"""

from collections import OrderedDict

from hascheduler.api.middleware.audit_writer import Sampler
from hascheduler.errors import TooMany
from hascheduler.model.values.instants import MonoMs

SESSIONS_MAX = 32
"""How many sessions of one token live at once; a login beyond that ends the oldest."""
BURST = 30
EVERY_MS = 2_000
_TOKENS_MAX = 1_000


class Logins:
    """Owner of what each token has left, by its public id, of the thousand that logged in last."""

    def __init__(self) -> None:
        self._left: OrderedDict[str, Sampler] = OrderedDict()

    def take(self, token: str, now: MonoMs) -> None:
        """One more login; `TooMany` where the token has none left."""
        sampler = self._left.pop(token, None) or Sampler(BURST, EVERY_MS)
        self._left[token] = sampler
        if len(self._left) > _TOKENS_MAX:
            self._left.popitem(last=False)
        if sampler.take(now) is None:
            raise TooMany("this token logs in too often", EVERY_MS // 1_000)
