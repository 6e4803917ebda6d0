"""structlog without rich and its dependencies, which take 3 MB: its own way to draw a traceback is not used here.

structlog uses rich wherever it is installed. Import this before any other module imports structlog; otherwise nothing
changes except the size.
"""

import sys

_ABSENT = None if "rich" in sys.modules else "rich"
if _ABSENT is not None:
    sys.modules[_ABSENT] = None  # type: ignore[assignment]  # importing it raises ImportError from here on

import structlog  # noqa: E402  # after that

if _ABSENT is not None:
    del sys.modules[_ABSENT]

__all__ = ["structlog"]
