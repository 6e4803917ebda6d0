"""Programs that answer from a list and record their calls, for answers that no real program gives on demand."""

import stat
import sys
from ast import literal_eval
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """\
#!{python} -IS
import sys, time
folder, _, name = sys.argv[0].rpartition("/")
with open(folder + "/calls", "a") as calls:
    print(ascii([name, *sys.argv[1:]]), file=calls)
said = " ".join(sys.argv[1:])
for part, out, err, status, hangs_s in {answers}:
    if part in said:
        time.sleep(hangs_s)
        sys.stdout.write(out)
        sys.stderr.write(err)
        sys.exit(status)
sys.exit("unexpected: " + said)
"""
"""It imports next to nothing: hundreds of them are started, and the imports would be most of what they take."""


@dataclass(frozen=True, slots=True)
class Says:
    out: str = ""
    err: str = ""
    status: int = 0
    hangs_s: float = 0


def put_tool(folder: Path, name: str, answers: Mapping[str, Says]) -> None:
    """Write a program that gives the first answer whose key is part of its arguments, and fails if none is."""
    rows = [(part, one.out, one.err, one.status, one.hangs_s) for part, one in answers.items()]
    tool = folder / name
    tool.write_text(_SCRIPT.format(python=sys.executable, answers=ascii(rows)))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def calls(folder: Path) -> list[str]:
    """Return the command lines in order."""
    made = folder / "calls"
    return [" ".join(literal_eval(line)) for line in made.read_text().splitlines()] if made.exists() else []
