"""Programs that answer from a list and note how they were called, for what no real one would do on demand."""

import json
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """\
import json, sys, time
from pathlib import Path
here = Path(__file__).parent
with (here / "calls").open("a") as calls:
    calls.write(json.dumps([Path(__file__).name, *sys.argv[1:]]) + "\\n")
said = " ".join(sys.argv[1:])
for part, answer in json.loads(Path(__file__ + ".answers").read_text()):
    if part in said:
        time.sleep(answer.get("hangs_s", 0))
        sys.stdout.write(answer.get("out", ""))
        sys.stderr.write(answer.get("err", ""))
        sys.exit(answer.get("status", 0))
sys.exit("unexpected: " + said)
"""


@dataclass(frozen=True, slots=True)
class Says:
    out: str = ""
    err: str = ""
    status: int = 0
    hangs_s: float = 0


def put_tool(folder: Path, name: str, answers: Mapping[str, Says]) -> None:
    """Into ``folder``: the first answer whose key is part of the arguments is given; it fails where there is none."""
    rows = [
        (part, {"out": one.out, "err": one.err, "status": one.status, "hangs_s": one.hangs_s})
        for part, one in answers.items()
    ]
    (folder / f"{name}.answers").write_text(json.dumps(rows))
    tool = folder / name
    tool.write_text(f"#!{sys.executable} -IS\n{_SCRIPT}")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)


def calls(folder: Path) -> list[str]:
    """The command lines, in their order."""
    made = folder / "calls"
    return [" ".join(json.loads(line)) for line in made.read_text().splitlines()] if made.exists() else []
