"""Writes the generated pages; with ``--check`` only compares them."""

import sys

from docs.generate.outputs import outputs, stale

if "--check" in sys.argv[1:]:
    old = stale()
    for name in old:
        print(f"{name} is stale: python -m docs.generate")
    sys.exit(bool(old))
for path, text in outputs().items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
