"""What the guard against dearer jobs makes of its rounds."""

import pytest

from tests.bench.guard import Guarded


@pytest.mark.parametrize(
    ("now", "dearer"),
    [([10.0, 14.0], {}), ([12.0, 30.0], {}), ([12.1, 13.0], {"fired": 1.21}), ([30.0, 12.5], {"fired": 1.25})],
)
def test_the_cheapest_rounds_are_compared_and_a_fifth_more_is_too_much(
    now: list[float], dearer: dict[str, float]
) -> None:
    reference = [{"submitted": 5.0, "fired": 11.0}, {"submitted": 4.0, "fired": 10.0}]
    guarded = Guarded([{"submitted": 4.4, "fired": cost} for cost in now], reference)
    assert guarded.ratios() == {"submitted": 1.1, "fired": min(now) / 10}
    assert guarded.dearer == dearer
