"""``python -m tests.fuzz --minutes 10``: all decoders in turn until the time is over; a failure can be replayed."""

import argparse
import random
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.decoders import DECODERS
from tests.fuzz.run import fuzz

_EXAMPLES = 1_000
FAILURES = Path(".run/fuzz")


def main() -> int:
    options = _options()
    if options.decoder:
        fuzz(options.decoder, options.seed, _EXAMPLES)
        print("nothing")
        return 0
    first = options.seed
    print(f"seed {first}", flush=True)
    until = time.monotonic() + options.minutes * 60
    failed: set[str] = set()
    rounds = 0
    while time.monotonic() < until:
        for name in DECODERS:
            if name in failed or time.monotonic() >= until:
                continue
            try:
                fuzz(name, first + rounds, _EXAMPLES)
            except Exception:
                failed.add(name)
                _keep(name, first + rounds)
        rounds += 1
        print(f"{rounds} × {_EXAMPLES} inputs a decoder, {len(failed)} of {len(DECODERS)} failed", flush=True)
    return 1 if failed else 0


def _keep(name: str, seed: int) -> None:
    FAILURES.mkdir(parents=True, exist_ok=True)
    file = FAILURES / f"{name.replace(' ', '-')}-{seed}.txt"
    file.write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
    print(f"{name} failed, see {file}; again: python -m tests.fuzz --decoder '{name}' --seed {seed}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--decoder", choices=DECODERS, help="with --seed: replay that one")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
