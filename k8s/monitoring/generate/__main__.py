"""Writes the generated files."""

from k8s.monitoring.generate.outputs import outputs

for path, text in outputs().items():
    path.write_text(text, encoding="utf-8")
