"""A list of programs is what may run, and nothing else: neither by arguments, nor by names, nor by the environment."""

from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.handlers.command import ALLOW, ENV, allowed_executable, child_environment
from tests.unit.processor.ready_made import make_job


def judged(setting: str, *argv: str) -> str | None:
    """What is executed, or None where it is refused."""
    try:
        return allowed_executable(argv, {ALLOW: setting})
    except InvalidInput as error:
        if error.path != ("payload", "argv", 0):
            raise
        return None


@pytest.mark.parametrize(
    "program",
    [
        *("sh", "bash", "busybox", "env", "find", "xargs", "git", "rsync", "ssh", "tar", "sudo", "timeout", "awk"),
        *("perl", "python", "python3", "python3.11", "pypy3", "perl5.36.0", "ruby2.7", "lua5.4", "node", "php8.2"),
    ],
)
def test_a_program_that_starts_others_is_not_listed_alone(program: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{ALLOW}: .* can start any other program"):
        allowed_executable(["/bin/ls"], {ALLOW: f"/bin/ls, /usr/bin/{program}"})


@pytest.mark.parametrize(
    ("setting", "arguments", "runs"),
    [
        ("{0} fetch", ["fetch", "origin"], True),
        ("{0} fetch", [], False),
        ("{0} fetch", ["push"], False),
        ("{0} fetch", ["-c", "alias.x=!sh", "fetch"], False),
        ("{0} -C /srv fetch origin $", ["-C", "/srv", "fetch", "origin"], True),
        ("{0} -C /srv fetch origin $", ["-C", "/srv", "fetch", "origin", "--upload-pack=sh"], False),
        ("{0} 'a b, c' \"$\"", ["a b, c"], True),
        ("{0} $", [], True),
        ("{0} $", ["x"], False),
    ],
)
def test_arguments_begin_as_the_list_says(tmp_path: Path, setting: str, arguments: list[str], runs: bool) -> None:
    program = tmp_path / "tool"
    program.write_text("")
    assert judged(setting.format(program), str(program), *arguments) == (str(program) if runs else None)


@pytest.mark.parametrize("setting", ["/bin/ls 'x", '/bin/ls "', "/bin/ls \\"])
def test_a_list_that_can_not_be_read_lets_nothing_run(setting: str) -> None:
    with pytest.raises(InvalidInput, match=ALLOW):
        allowed_executable(["/bin/ls"], {ALLOW: setting})


@pytest.mark.parametrize(
    ("setting", "name", "passes"),
    [
        (None, "TZ", True), (None, "LC_ALL", True), (None, "HOME", False), (None, "SSH_ASKPASS", False),
        (None, "http_proxy", False), (None, "TZDIR", False), ("APP_*, MODE", "APP_DEBUG", True),
        ("APP_*, MODE", "MODES", False), ("APP_*, MODE", "TZ", False), ("", "TZ", False),
    ],
)  # fmt: skip
def test_the_payload_sets_only_what_is_listed(setting: str | None, name: str, passes: bool) -> None:
    own = {} if setting is None else {ENV: setting}
    if passes:
        assert child_environment({name: "x"}, make_job(), own)[name] == "x"
        return
    with pytest.raises(InvalidInput) as refused:
        child_environment({name: "x"}, make_job(), own)
    assert refused.value.path == ("payload", "env", name)
