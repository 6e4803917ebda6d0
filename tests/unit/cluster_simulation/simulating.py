"""Runs the simulator in a process of its own, as it takes logging, chance and the event loop for itself."""

import os

from tests.warm import Ended, warm

ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}
_MAIN = "from tests.cluster_simulation.__main__ import main; raise SystemExit(main())"
_PATIENCE_S = 1_000
"""That nothing hangs: how long so many stories take depends on the machine, and on what else it has to do."""


def simulate(*options: str) -> Ended:
    prepared = warm("tests.cluster_simulation.__main__", hash_seed=ENVIRONMENT["PYTHONHASHSEED"])
    return prepared.run(_MAIN, *options, environment=ENVIRONMENT, patience_s=_PATIENCE_S)
