"""structlog without rich and what that brings, which are 3 MB: its own way to draw a traceback is not used here.

structlog takes rich wherever it is installed. This has to be imported before any other module imports structlog; else
all is as before, only larger.
"""

import sys

_ABSENT = None if "rich" in sys.modules else "rich"
if _ABSENT is not None:
    sys.modules[_ABSENT] = None  # type: ignore[assignment]  # to import it is an ImportError from here on

import structlog  # noqa: E402  # after that

if _ABSENT is not None:
    del sys.modules[_ABSENT]

__all__ = ["structlog"]
