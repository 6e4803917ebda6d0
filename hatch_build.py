"""Builds a wheel whose pure rooms are native code, by mypyc; see `hascheduler.compiled`.

Without being asked for, hatchling makes a wheel of pure Python, which any machine can do::

    hatchling build -t wheel                                       # pure
    HATCH_BUILD_HOOK_ENABLE_CUSTOM=true hatchling build -t wheel   # compiled: needs mypy, setuptools, a C compiler
                                                                   # and Python's headers
"""

import os
import shutil
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from mypyc.build import mypycify
from setuptools import Distribution

_ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(_ROOT))
from hascheduler.compiled import DIGEST_FILE, compiled_sources, sources_digest  # noqa: E402  # not installed yet


class CompiledCore(BuildHookInterface[Any]):
    """Adds the native modules, each beside its source, and tags the wheel for this Python and machine."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # its sources are about to be edited
            return
        self._folder = Path(tempfile.mkdtemp(prefix="compiled-"))
        compile_core(self._folder)
        made = [path for path in self._folder.rglob("*") if path.is_file()]
        build_data["force_include"] |= {str(path): path.relative_to(self._folder).as_posix() for path in made}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self._folder)


def compile_core(into: Path) -> None:
    """Write the native modules below ``into``, as the package is laid out, and the digest of their sources."""
    # `make types` has checked the types; here libraries may be missing, and what they type in rooms beside the core.
    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", "--cache-dir=/dev/null"]
    sources = [str(path.relative_to(_ROOT)) for path in compiled_sources(_ROOT / "hascheduler")]
    digest = sources_digest(_ROOT / "hascheduler")
    with tempfile.TemporaryDirectory() as scratch, chdir(_ROOT):
        modules = mypycify(
            [*options, *sources],
            # By mypyc's own name. At 0 it takes half the time, which is enough to see whether the outcome runs.
            opt_level=os.environ.get("MYPYC_OPT_LEVEL", "2"),
            debug_level="0",
            multi_file=True,
            target_dir=scratch,
            group_name="hascheduler_core",
        )
        build = Distribution({"name": "hascheduler-core", "ext_modules": modules}).get_command_obj("build_ext")
        build.build_lib, build.build_temp = str(into), scratch
        build.parallel = os.cpu_count()
        build.ensure_finalized()
        build.run()
    (into / "hascheduler" / DIGEST_FILE).write_text(digest + "\n")
