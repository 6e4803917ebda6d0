"""The house is kept: one meaning a name, and each room says what it answers."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "hascheduler"

GENERATED = ("client/answers.py", "client/options.py", "client/synchronous/")
"""They name what they are made from: the answers of the API and what it takes, the asynchronous client."""


def _modules(folder: Path) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(folder.rglob("*.py"))}


def test_no_class_name_stands_in_two_modules() -> None:
    where: dict[str, list[str]] = defaultdict(list)
    for path, module in _modules(PACKAGE).items():
        if path.relative_to(PACKAGE).as_posix().startswith(GENERATED):
            continue
        for node in module.body:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(ROOT)))
    assert not {name: paths for name, paths in where.items() if len(paths) > 1}


def test_each_package_says_what_it_answers() -> None:
    packages = {path.parent / "__init__.py" for path in PACKAGE.rglob("*.py")}
    silent = {str(package.relative_to(ROOT)) for package in packages if not _said(package)}
    assert not silent


def _said(package: Path) -> str:
    text = ast.get_docstring(ast.parse(package.read_text("utf-8"))) if package.exists() else None
    return (text or "").removeprefix("TODO").strip(".")
