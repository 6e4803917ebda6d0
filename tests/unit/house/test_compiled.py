"""Which form of the core runs, and that sources say nothing which the compiler reads as something else."""

import ast
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from hascheduler import __version__
from hascheduler.compiled import DIGEST_FILE, ROOMS, compiled_rooms, compiled_sources, is_stale, sources_digest
from hascheduler.dispatch import dispatcher
from hascheduler.mirror import mirror

ROOT = Path(__file__).resolve().parents[3]
COMPILED = os.environ.get("TESTS_COMPILED") == "1"
"""`make check-compiled` says so: then these tests, and all beside them, must run on native code."""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The compiled form of the package as it would be installed, of empty native modules."""
    copy = tmp_path / "hascheduler"
    for source in compiled_sources(ROOT / "hascheduler"):
        target = copy / source.relative_to(ROOT / "hascheduler")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        target.with_suffix(EXTENSION_SUFFIXES[0]).touch()
    (copy / DIGEST_FILE).write_text(sources_digest(copy) + "\n")
    return copy


def test_what_runs_is_what_is_said() -> None:
    assert compiled_rooms() == (ROOMS if COMPILED else ())
    assert not is_stale()
    for module in (dispatcher, mirror):
        assert str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)) is COMPILED


def test_native_code_is_of_the_sources_beside_it(package: Path) -> None:
    assert compiled_rooms(package) == ROOMS
    assert not is_stale(package)
    compiled_rooms.cache_clear()


@pytest.mark.parametrize("room", ROOMS)
def test_an_edit_after_the_compilation_is_noticed(package: Path, room: str) -> None:
    source = package.joinpath(*room.split(".")) / "__init__.py"
    source.write_text(source.read_text() + "\n# edited\n")
    assert is_stale(package)


def test_pure_python_is_never_stale(package: Path) -> None:
    for native in package.rglob(f"*{EXTENSION_SUFFIXES[0]}"):
        native.unlink()
    assert compiled_rooms(package) == ()
    assert not is_stale(package)


@pytest.mark.slow
def test_the_command_line_says_which_one_runs() -> None:
    command = [sys.executable, "-m", "hascheduler", "version", "--verbose"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert said[0] == f"hascheduler {__version__}"
    assert f"core: {'compiled (' + ', '.join(ROOMS) + ')' if COMPILED else 'pure Python'}" in said


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    for source in compiled_sources(ROOT / "hascheduler"):
        for node in ast.walk(ast.parse(source.read_text())):
            yield f"{source.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", node


def test_no_alternative_is_given_a_name() -> None:
    """Compiled, ``case (int() | None) as name`` leaves the name unbound where it is None."""
    named = [
        where
        for where, node in _nodes()
        if isinstance(node, ast.MatchAs) and node.name is not None and isinstance(node.pattern, ast.MatchOr)
    ]
    assert named == []


@pytest.mark.parametrize("source", compiled_sources(ROOT / "hascheduler"), ids=lambda path: path.stem)
def test_each_compiled_module_can_be_imported(source: Path) -> None:
    """Native classes are made at the import, which fails where one can't be."""
    name = ".".join(source.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    assert str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES)) is COMPILED


def test_no_field_is_an_object() -> None:
    """Compiled, a class with a field that is annotated ``object`` can't be imported."""
    fields = [
        where
        for where, node in _nodes()
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.annotation, ast.Name)
        and field.annotation.id == "object"
    ]  # fmt: skip
    assert fields == []


def test_nothing_is_handed_on_lazily_that_would_be_made_at_once() -> None:
    """Compiled, a generator expression is a list: ``yield from`` of one would make all before the first is taken."""
    eager = [
        where for where, node in _nodes() if isinstance(node, ast.YieldFrom | ast.Return)
        and isinstance(node.value, ast.GeneratorExp)
    ]  # fmt: skip
    assert eager == []
