"""``command``: runs one program for each attempt; its payload and the settings are in docs/how-to/processors.md.

At the timeout, or if the job is cancelled, all of the program's process group gets SIGTERM, and SIGKILL after 5 s;
after half a second if the processor gives the job up. Processes that the program leaves running in its group are killed
too. One that makes a session of its own escapes, and if the processor is killed, the program lives on.
"""

import asyncio
import os
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Annotated, Any

from pydantic import Field

from hascheduler.errors import InvalidInput, WorldError
from hascheduler.handlers.texts import TEXT_JSON_BYTES_MAX, cut, one_line
from hascheduler.lifecycle import in_time
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import format_duration, format_instant
from hascheduler.processor import Handlers, JobContext
from hascheduler.processor.child_process import ProcessGroup, signal_name
from hascheduler.schema.forms import span
from hascheduler.schema.noun import Part, read_request

handlers = Handlers()

ALLOW = "HASCHEDULER_COMMAND_ALLOW"
ENV = "HASCHEDULER_COMMAND_ENV"
_PATH = ("payload", "argv", 0)
_STARTS_OTHERS = frozenset(
    """
    ash bash busybox csh dash fish ksh mksh rbash sh tcsh toybox zsh awk bun deno ed emacs ex expect gawk java lua
    luajit mawk nawk node nvim perl php pwsh pypy python Rscript ruby sed tclsh vi vim chroot chrt chpst doas env
    find flock ionice nice nohup nsenter parallel pkexec runuser script setarch setpriv setsid start-stop-daemon
    stdbuf strace su sudo systemd-run taskset tee time timeout unshare watch xargs ansible cargo cmake cpio curl
    docker gdb git go hg kubectl ld.so less make man more mosquitto_sub mysql nc ncat nmap npm npx openssl pip
    podman psql rpm rsync scp screen sftp socat sqlite ssh svn tar tmux uv wget zip
    """.split()  # noqa: SIM905
)
_VERSION = re.compile(r"-?[0-9][0-9.]*$")
_NAME_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_RESERVED = frozenset(
    """
    PATH IFS ENV BASH_ENV BASHOPTS SHELLOPTS PS4 PROMPT_COMMAND ZDOTDIR GLIBC_TUNABLES GCONV_PATH LOCPATH NLSPATH
    HOSTALIASES OPENSSL_CONF OPENSSL_MODULES JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS CLASSPATH LUA_INIT
    LUA_PATH LUA_CPATH NODE_OPTIONS NODE_PATH PHPRC PHP_INI_SCAN_DIR EDITOR VISUAL PAGER BROWSER LESSOPEN LESSCLOSE
    TAR_OPTIONS RSYNC_RSH
    """.split()  # noqa: SIM905
)
# Variables that the processor sets; the dynamic loader's; those that load code or start programs on request.
_RESERVED_PREFIXES = ("HASCHEDULER_", "LD_", "DYLD_", "PYTHON", "PERL", "RUBY", "GIT_")
GRACE_S = 5.0
# Revoked, fenced or drained: another processor may start the next attempt, and the SDK asks a second time after 2 s.
_GRACE_GIVEN_UP_S = 0.5
_KILLED_LIMIT_S, _SILENCE_LIMIT_S = 5.0, 1.0
HALF_BYTES_MAX = 32 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")


class CommandFailed(WorldError):
    """The program ran and did not succeed, or could not be started now."""


class CommandPayload(Part):
    argv: list[str] = Field(min_length=1, max_length=1_000)
    env: dict[str, str] = Field(default={}, max_length=200)
    cwd: str = "/"
    stdin: str = ""
    timeout_ms: Annotated[int, span(100, 24 * 3_600_000)] = 600_000
    ok_codes: list[Annotated[int, Field(ge=0, le=255)]] = Field(default=[0], min_length=1)


@handlers.handler("command")
async def command(job: JobContext) -> dict[str, Any]:
    payload = read_request(CommandPayload, job.payload, ("payload",))
    executable = allowed_executable(payload.argv, os.environ)
    process = start_program([executable, *payload.argv[1:]], child_environment(payload.env, job, os.environ), payload)
    stdout, stderr = Output(process.stdout), Output(process.stderr)
    try:
        group = ProcessGroup(process)
    except RuntimeError as error:
        stdout.close()
        stderr.close()
        raise CommandFailed(f"the program can't be watched: {error}") from None
    try:
        try:
            timed_out = not await _wait_all(payload.timeout_ms / 1000, group.exited)
        except asyncio.CancelledError:
            group.signal(signal.SIGTERM)
            grace_s = GRACE_S if job.cancel_requested else _GRACE_GIVEN_UP_S
            await _wait_all(grace_s, group.exited, stdout.ended, stderr.ended)  # a second cancellation ends the grace
            raise
        if timed_out:
            group.signal(signal.SIGTERM)
            await _wait_all(GRACE_S, group.exited, stdout.ended, stderr.ended)
    finally:
        try:
            group.signal(signal.SIGKILL)
            if not await _wait_all(_KILLED_LIMIT_S, group.exited):
                raise CommandFailed(f"process {process.pid} was killed but has not exited")
            # A process that left the group may hold the output open.
            await _wait_all(_SILENCE_LIMIT_S, stdout.ended, stderr.ended)
        finally:
            stdout.close()
            stderr.close()
            group.close()
    code, last_line = process.wait(), one_line(stderr.last_line())
    if not timed_out and code in payload.ok_codes:
        (out, is_out_cut), (err, is_err_cut) = stdout.text(), stderr.text()
        return {"exit_code": code, "stdout": out, "stderr": err, "truncated": is_out_cut or is_err_cut}
    how = f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"
    how = f"timed out after {format_duration(payload.timeout_ms)}" if timed_out else how
    raise CommandFailed(f"{how}: {last_line}" if last_line else how)


async def _wait_all(limit_s: float, *events: asyncio.Event) -> bool:
    """Wait for all events, at most for that time; return True if they came."""
    return await in_time(asyncio.gather(*(event.wait() for event in events)), limit_s)


def start_program(argv: list[str], environment: dict[str, str], payload: CommandPayload) -> "subprocess.Popen[bytes]":
    if not (os.path.isabs(payload.cwd) and os.path.isdir(payload.cwd)):
        raise InvalidInput(("payload", "cwd"), f"no directory {payload.cwd!r} on this processor", "an absolute path")
    with tempfile.TemporaryFile() as stdin:  # writing to a pipe would wait for a child that may never read
        stdin.write(payload.stdin.encode("utf-8", "replace"))
        stdin.seek(0)
        pipes: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            return subprocess.Popen[bytes](  # an argument list, for an allowed program
                argv, env=environment, cwd=payload.cwd, bufsize=0, start_new_session=True, **pipes
            )
        except (BlockingIOError, MemoryError) as error:
            raise CommandFailed(f"can't be started now: {error}") from None
        except (OSError, ValueError) as error:  # ValueError for a NUL character
            problem = f"can't be started: {getattr(error, 'strerror', error)}"
            raise InvalidInput(("payload", "argv"), problem, "an executable file and valid arguments") from None


class Output:
    """The beginning and the end of the output from a pipe.

    It is not a transport of the event loop: those take over a pipe in an await, and if that is cancelled, it is unknown
    who must close the pipe.
    """

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self._size = 0
        self._head, self._tail = bytearray(), bytearray()
        self.ended = asyncio.Event()
        os.set_blocking(pipe.fileno(), False)
        self._loop.add_reader(pipe.fileno(), self._readable)

    def close(self) -> None:
        if not self.ended.is_set():
            self._loop.remove_reader(self._pipe.fileno())
            self._pipe.close()
            self.ended.set()

    def text(self) -> tuple[str, bool]:
        """Return the text that was kept, with a line about the size if anything is missing, and True in that case."""
        head, tail = bytes(self._head), bytes(self._tail[-HALF_BYTES_MAX:])
        whole = (head + tail).decode("utf-8", "replace")
        if self._size <= 2 * HALF_BYTES_MAX and cut(whole) == whole:
            return whole, False
        # A character that was cut in two is left out.
        first = cut(head.decode("utf-8", "replace").removesuffix("\ufffd"), TEXT_JSON_BYTES_MAX // 2)
        begun = next((n for n, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
        last = cut(tail[begun:].decode("utf-8", "replace"), TEXT_JSON_BYTES_MAX // 2, keep_end=True)
        return f"{first}\n[… the middle of {self._size} bytes is left out …]\n{last}", True

    def last_line(self) -> str:
        lines = (self._tail or self._head)[-4096:].decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _readable(self) -> None:
        try:
            data = os.read(self._pipe.fileno(), 64 * 1024)
        except BlockingIOError:
            return
        if not data:
            self.close()
        self._size += len(data)
        room = HALF_BYTES_MAX - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 4 * HALF_BYTES_MAX:  # not for each piece, which would move the whole tail for a byte
            del self._tail[:-HALF_BYTES_MAX]


def allowed_executable(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the path to execute, and to be argv[0], as some programs act by their name; else raise `InvalidInput`.

    It is the listed path, never a link to it, which could change after the check. The directory of a path is resolved
    before paths are compared, but not the last part: if ``ls`` and ``sh`` are links to one busybox, listing ``ls`` must
    not allow ``sh``. A link that is not listed may run if the file that it finally leads to is listed.
    """
    entries = _entries(environment.get(ALLOW, ""))
    how, arguments = "", list(argv[1:])
    for path in (_located(argv[0]), os.path.realpath(argv[0])):
        for listed, *beginning in entries:
            is_all = beginning[-1:] == ["$"]
            needed = beginning[:-1] if is_all else beginning
            if path != _located(listed):
                continue
            how = " with these arguments"
            if arguments[: len(needed)] == needed and not (is_all and len(arguments) > len(needed)):
                if not os.path.isfile(path):
                    raise InvalidInput(_PATH, f"no program at {argv[0]!r} on this processor", "an existing file")
                return path
    expected = f"a program that {ALLOW} lists; it is not set on this processor"
    if entries:
        expected = f"one of {', '.join(shlex.join(each) for each in entries)}"
    raise InvalidInput(_PATH, f"{argv[0]!r} is not allowed to run{how}", expected)


def _located(path: str) -> str:
    directory, name = os.path.split(path)
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(directory), name)


def _entries(setting: str) -> list[list[str]]:
    lexer = shlex.shlex(setting, posix=True, punctuation_chars=",")
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word.strip(","):
                words[-1].append(word)
            else:
                words.append([])
    except ValueError as error:
        raise InvalidInput((ALLOW,), f"{error}".lower(), "closed quotes") from None
    entries = [entry for entry in words if entry]
    for path, *beginning in entries:
        if not path.startswith("/"):
            raise InvalidInput((ALLOW,), f"{path!r} is not absolute", "absolute paths, comma-separated")
        if not beginning and {os.path.basename(path), _VERSION.sub("", os.path.basename(path))} & _STARTS_OTHERS:
            problem = f"{path!r} can start any other program"
            expected = "its first arguments too, such as '/usr/bin/git fetch origin $', or a script of your own"
            raise InvalidInput((ALLOW,), problem, expected)
    return entries


def child_environment(env: Mapping[str, str], job: JobContext, own: Mapping[str, str]) -> dict[str, str]:
    """Return the program's whole environment, built from nothing, so that no secret of the processor leaks into it.

    The payload sets only names that ``HASCHEDULER_COMMAND_ENV`` lists in ``own``, the processor's environment;
    ``APP_*`` there stands for all that begin with ``APP_``.
    """
    listed = [text for part in own.get(ENV, "TZ,LANG,LC_*").split(",") if (text := part.strip())]
    for pattern in listed:
        if not _NAME_PATTERN.fullmatch(pattern):
            raise InvalidInput((ENV,), f"{pattern!r} is no variable's name", "names or 'APP_*', comma-separated")
    expected = (
        f"one of {', '.join(listed)}, unless it decides which code runs" if listed else f"none, as {ENV} is empty"
    )
    for name in env:
        upper = name.upper()  # a few programs do not tell the cases apart
        is_listed = any(name.startswith(each[:-1]) if each[-1] == "*" else name == each for each in listed)
        if not is_listed or not _NAME.match(name) or upper in _RESERVED or upper.startswith(_RESERVED_PREFIXES):
            problem = f"the payload can't set {quoted(name)}"
            raise InvalidInput(("payload", "env", name[:128]), problem, expected)
    return {
        **env,
        "PATH": own.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": env.get("LANG") or own.get("LANG") or "C.UTF-8",
        "HASCHEDULER_JOB_ID": job.id,
        "HASCHEDULER_ATTEMPT": str(job.attempt),
        **({} if job.schedule is None else {"HASCHEDULER_SCHEDULE": job.schedule}),
        **({} if job.nominal_ms is None else {"HASCHEDULER_NOMINAL_AT": format_instant(job.nominal_ms)}),
    }
