"""Lists of numbers on a command line."""

from hascheduler.errors import InvalidInput


def read_numbers(option: str, text: str, *, least: int = 1) -> list[int]:
    """``text`` is numbers with commas between, each ``least`` or more; else `InvalidInput`."""
    numbers = [int(part) for part in text.replace("_", "").split(",") if part.strip().isdecimal()]
    if len(numbers) != text.count(",") + 1 or min(numbers) < least:
        raise InvalidInput((option,), f"{text[:64]!r}", f"whole numbers from {least}, with commas between")
    return numbers
