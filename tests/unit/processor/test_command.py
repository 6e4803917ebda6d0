"""Commands that are real processes: what they are given, what is kept of them, and what may run."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.handlers.command import (
    ALLOW,
    ENV,
    HALF_BYTES_MAX,
    allowed_executable,
    child_environment,
)
from tests.unit.processor.ready_made import error_of, make_job, result_of

PYTHON = sys.executable


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW, f"{PYTHON} -c, /bin/sh -c")
    monkeypatch.setenv(ENV, "TZ, A")


def python(program: str, *arguments: str, **payload: Any) -> dict[str, Any]:
    return {"argv": [PYTHON, "-c", program, *arguments], **payload}


def sh(program: str, **payload: Any) -> dict[str, Any]:
    return {"argv": ["/bin/sh", "-c", program], **payload}


async def test_arguments_arrive_as_they_are_and_no_shell_sees_them() -> None:
    arguments = ["$(id)", "; exit 1", "*", "", "a b", "ü", "`x`"]
    result = await result_of("command", python("import sys, json; print(json.dumps(sys.argv[1:]))", *arguments))
    assert json.loads(result.pop("stdout")) == arguments
    assert result == {"exit_code": 0, "stderr": "", "truncated": False}


async def test_the_child_sees_nothing_of_the_processors_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASCHEDULER_MONGODB_URI", "secret")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("LANG", "C.UTF-8")
    program = "import os, json; print(json.dumps(dict(os.environ)))"
    result = await result_of("command", python(program, env={"TZ": "UTC", "A": "ü"}))
    assert json.loads(result["stdout"]) == {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HASCHEDULER_JOB_ID": "j1",
        "HASCHEDULER_ATTEMPT": "1",
        "TZ": "UTC",
        "A": "ü",
    }


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("echo first >&2; echo '  last line ' >&2; echo >&2; exit 3", "CommandFailed: exit code 3: last line"),
        ("echo out; exit 1", "CommandFailed: exit code 1"),
        ("printf 'a\\033[31mb\\377' >&2; exit 1", "CommandFailed: exit code 1: a [31mb\ufffd"),
        ("kill -KILL $$", "CommandFailed: killed by SIGKILL"),
        ("kill -TERM $$", "CommandFailed: killed by SIGTERM"),
    ],
)
async def test_what_is_not_a_success_fails_with_the_last_line_of_stderr(program: str, error: str) -> None:
    assert await error_of("command", sh(program)) == error


async def test_the_codes_of_success_are_the_payloads_to_say() -> None:
    assert (await result_of("command", sh("exit 3", ok_codes=[0, 3])))["exit_code"] == 3
    assert await error_of("command", sh("exit 0", ok_codes=[3])) == "CommandFailed: exit code 0"


async def test_a_flood_on_both_outputs_keeps_their_beginning_and_end() -> None:
    program = """
import os
os.write(1, b"first out\\n"), os.write(2, b"first err\\n")
for _ in range(200):
    os.write(1, b"o" * 50_000), os.write(2, b"e" * 50_000)
os.write(1, b"\\nlast out\\n"), os.write(2, b"\\nlast err\\n")
"""
    result = await result_of("command", python(program))
    assert result["truncated"] is True
    for name in ("out", "err"):
        text = result[f"std{name}"]
        assert text.startswith(f"first {name}\n")
        assert text.endswith(f"\nlast {name}\n")
        assert "\n[… the middle of 10000020 bytes is left out …]\n" in text
        assert len(text) < 2 * HALF_BYTES_MAX + 200


async def test_without_the_setting_nothing_runs_and_the_error_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALLOW)
    error = await error_of("command", sh("true"))
    assert error.startswith("InvalidInput: payload.argv.0: '/bin/sh' is not allowed to run; expected ")
    assert f"{ALLOW} lists; it is not set" in error


def test_a_program_that_is_not_listed_does_not_run_whatever_it_is_called(tmp_path: Path) -> None:
    box, other = tmp_path / "box", tmp_path / "other"
    for file in (box, other):
        file.write_text("")
    for link, target in {"ls": box, "sh": box, "chain": tmp_path / "ls", "loop": tmp_path / "loop"}.items():
        (tmp_path / link).symlink_to(target)
    (tmp_path / "alias").symlink_to(tmp_path, target_is_directory=True)
    cases = """
        box         box               box
        box         ls                box    leads to what is listed
        box         chain             box
        ls          alias/ls          ls
        alias/ls    ls                ls
        ls          alias/../{0}/ls   ls
        ls          sh                -      the same program under another name does another thing
        ls          box               -
        ls          chain             -
        ls          loop              -
        ls          ls/               -
        alias       ls                -
        box         ../box            -
    """
    for case in cases.format(tmp_path.name).strip().splitlines():
        listed, program, executed, *_ = case.split()
        environment = {ALLOW: f"{tmp_path}/{listed}"}
        if executed == "-":
            with pytest.raises(InvalidInput, match="is not allowed to run"):
                allowed_executable([f"{tmp_path}/{program}"], environment)
        else:
            assert allowed_executable([f"{tmp_path}/{program}"], environment) == f"{tmp_path}/{executed}"


async def test_what_can_not_be_started_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no program")
    monkeypatch.setenv(ALLOW, f"{text}, /bin/sh -c")
    assert "payload.argv: can't be started: Permission denied" in await error_of("command", {"argv": [str(text)]})
    text.chmod(0o755)
    assert "payload.argv: can't be started: Exec format error" in await error_of("command", {"argv": [str(text)]})
    assert "payload.argv: can't be started: embedded null byte" in await error_of("command", sh("a\0b"))
    long = {"argv": ["/bin/sh", "-c", ":", "x" * 200_000]}
    assert "payload.argv: can't be started: Argument list too long" in await error_of("command", long)
    for absent in (str(tmp_path / "absent"), "tests"):
        assert f"payload.cwd: no directory '{absent}' on" in await error_of("command", sh("true", cwd=absent))


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "ld_preload", "PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT"),
        *("NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "IFS", "PATH", "GIT_SSH_COMMAND", "GLIBC_TUNABLES"),
        *("HASCHEDULER_ATTEMPT", "HASCHEDULER_COMMAND_ALLOW"),
    ],
)
def test_a_variable_that_decides_which_code_runs_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^payload\.env\.{name}: the payload can't set '{name}'"):
        child_environment({name: "1"}, make_job(), {ENV: f"{name}, {name[:2]}*"})
