"""YAML as people write it in our files: safe, without instants, and without repeated keys.

An instant would lose its offset, so it stays a text; of two equal keys one would silently win.
"""

from typing import Any

import yaml


class StrictLoader(yaml.CSafeLoader):
    """A loader for `yaml.load` and `yaml.load_all`; a repeated key is a `ConstructorError` with its place."""

    yaml_implicit_resolvers = {  # noqa: RUF012  # the base class has it as an instance variable
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[object] = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def too_deep_at(text: str, levels_max: int) -> int | None:
    """Return the line where ``text`` is nested deeper than that: the composer recurses in C, which ends the process."""
    depth = 0
    for event in yaml.parse(text, StrictLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > levels_max:
            return 0 if event.start_mark is None else event.start_mark.line + 1
    return None
