"""A short fuzz run of every decoder, the same each time; ``make fuzz`` is the long one."""

from typing import Any

import pytest

from tests.fuzz import run
from tests.fuzz.decoders import DECODERS
from tests.fuzz.run import TooDear, fuzz, watched
from tests.tiers import examples


@pytest.mark.parametrize("name", DECODERS)
def test_nothing_but_what_is_promised_gets_out_of_a_decoder(name: str) -> None:
    fuzz(name, seed_number=1, examples=examples(60))


def test_the_watchdog_tells_what_costs_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MEMORY_BYTES_MAX", 1_000)
    with pytest.raises(TooDear):
        watched(bytearray, 100_000, ())
    monkeypatch.setattr(run, "CPU_S_MAX", 0.0)
    with pytest.raises(TooDear):
        watched(lambda count: sum(range(count)), 10_000, ())


def test_a_refusal_that_was_not_promised_gets_out_with_its_input() -> None:
    def decode(_: Any) -> None:
        raise KeyError("never promised")

    with pytest.raises(KeyError):
        watched(decode, "x", (ValueError,))
