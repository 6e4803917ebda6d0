"""The criteria of a policy and the presets."""

import ast
import inspect

from docs.generate.markdown import code, plain_docstring, table
from hascheduler.model import policy
from hascheduler.model.policy import DEFAULT_PRESET, PRESETS, Criterion, bonus_max_of, idle_key_start_of

_INTRO = """\
## Criteria

A policy is a list of criteria, compared one after the other, and then by arrival. `HASCHEDULER_POLICY` takes a preset
or a list with commas; a lane may have its own list. [Policies](../explanation/policies.md) has the formulas.
"""


def section() -> str:
    meanings = _docstrings(Criterion)
    criteria = ((code(each.value), plain_docstring(meanings[each.name])) for each in Criterion)
    presets = (
        (
            code(name) + (" (default)" if name == DEFAULT_PRESET else ""),
            ", ".join(order),
            code(idle_key_start_of(name).value),
            "none" if bonus_max_of(name) is None else str(bonus_max_of(name)),
        )
        for name, order in PRESETS.items()
    )
    return "\n".join(
        (
            _INTRO,
            table(("criterion", "what goes first"), criteria),
            "### Presets\n",
            table(("preset", "order", "idle key starts at", "on-demand bonus at most (milli-points)"), presets),
        )
    )


def _docstrings(kind: type) -> dict[str, str]:
    """Return the sentence below each member of an enum, by the name of the member."""
    [found] = [
        node
        for node in ast.parse(inspect.getsource(policy)).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    ]
    result: dict[str, str] = {}
    for before, after in zip(found.body, found.body[1:], strict=False):
        match before, after:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(text))):
                result[name] = text
    return result
