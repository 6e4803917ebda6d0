"""Percentiles by nearest rank: always one of the values."""

import math
from collections.abc import Sequence


def percentile(values: Sequence[int], per_cent: float) -> int:
    """The smallest value that at least ``per_cent`` of them do not exceed; 0 for none."""
    if not values:
        return 0
    return sorted(values)[max(0, math.ceil(len(values) * per_cent / 100) - 1)]
