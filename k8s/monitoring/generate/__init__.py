"""The generated files of this folder, from what people write.

::

    rules/*.yaml ──► rule_object ──► prometheus-rule.yaml     the rules, as the operator takes them
    rows/*.py ─► panels ─► layout ─► dashboard ──► dashboard.json

The same input gives the same bytes, so that a test can compare. ``python -m k8s.monitoring.generate`` writes them.
"""
