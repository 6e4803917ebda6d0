"""Which programs may run.

A path names an entry of a directory, whichever way leads there, so the directory's part is resolved before paths are
compared. The last part is not, for what is listed: on a system where ``ls`` and ``sh`` are links to one busybox,
listing ``ls`` must not allow ``sh``. A link that is not listed itself may run if what it finally leads to is.

An entry is a path and what the arguments have to begin with, in quotes where they hold blanks or commas; a last word
``$`` says that nothing may follow::

    HASCHEDULER_COMMAND_ALLOW='/usr/local/bin/backup, /usr/bin/git -C /srv/site fetch origin $'

A program that is there to start others, or that does so for one option, is refused where an entry does not say how its
arguments begin: to list ``/usr/bin/env`` alone would be to list everything. That is a net, not a wall: any program may
have an option that starts another, so let arguments follow only where the program is made for arguments of strangers.
"""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hascheduler.errors import InvalidInput

ALLOW = "HASCHEDULER_COMMAND_ALLOW"
_PATH = ("payload", "argv", 0)
_NOTHING_MORE = "$"
_STARTS_OTHERS = frozenset(
    {"ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "toybox", "zsh"}  # shells
    | {"awk", "bun", "deno", "ed", "emacs", "ex", "expect", "gawk", "java", "lua", "luajit", "mawk", "nawk", "node"}
    | {"nvim", "perl", "php", "pwsh", "pypy", "python", "Rscript", "ruby", "sed", "tclsh", "vi", "vim"}  # interpreters
    | {"chroot", "chrt", "chpst", "doas", "env", "find", "flock", "ionice", "nice", "nohup", "nsenter", "parallel"}
    | {"pkexec", "runuser", "script", "setarch", "setpriv", "setsid", "start-stop-daemon", "stdbuf", "strace", "su"}
    | {"sudo", "systemd-run", "taskset", "tee", "time", "timeout", "unshare", "watch", "xargs"}
    | {"ansible", "cargo", "cmake", "cpio", "curl", "docker", "gdb", "git", "go", "hg", "kubectl", "ld.so", "less"}
    | {"make", "man", "more", "mosquitto_sub", "mysql", "nc", "ncat", "nmap", "npm", "npx", "openssl", "pip", "podman"}
    | {"psql", "rpm", "rsync", "scp", "screen", "sftp", "socat", "sqlite", "ssh", "svn", "tar", "tmux", "uv", "wget"}
    | {"zip"}
)
_VERSION = re.compile(r"-?[0-9][0-9.]*$")


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    beginning: tuple[str, ...]
    is_all: bool
    """Whether no other argument may follow."""

    def fits(self, arguments: Sequence[str]) -> bool:
        beginning = tuple(arguments[: len(self.beginning)])
        return beginning == self.beginning and not (self.is_all and len(arguments) > len(beginning))

    def __str__(self) -> str:
        return shlex.join((self.path, *self.beginning))


def allowed_executable(argv: Sequence[str], environment: Mapping[str, str]) -> str:
    """The path to execute for ``argv``: what is listed, never a link to it, which could change after the check.

    It is to be argv[0] as well: some programs do what they are called. A program that is not allowed, not so, or not
    there is an `InvalidInput`; so is a setting that can't be read.
    """
    program, arguments = argv[0], argv[1:]
    entries = _read(environment.get(ALLOW, ""))
    listed = False
    for path in (_entry(program), os.path.realpath(program)):
        for entry in entries:
            if path != _entry(entry.path):
                continue
            listed = True
            if entry.fits(arguments):
                if not os.path.isfile(path):
                    raise InvalidInput(_PATH, f"there is no program at {program!r} on this processor", "one that is")
                return path
    if not entries:
        allowed = f"{ALLOW} on the processor, which is not set, to list it"
    else:
        allowed = f"one of {', '.join(map(str, entries))}"
    how = " with these arguments" if listed else ""
    raise InvalidInput(_PATH, f"{program!r} is not allowed to run{how}", allowed)


def _read(setting: str) -> list[_Entry]:
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
        raise InvalidInput((ALLOW,), f"{error}".lower(), "quotes that end") from None
    return [_checked(entry) for entry in words if entry]


def _checked(words: Sequence[str]) -> _Entry:
    path, beginning = words[0], tuple(words[1:])
    if not path.startswith("/"):
        raise InvalidInput((ALLOW,), f"{path!r} is not absolute", "absolute paths, comma-separated")
    is_all = beginning[-1:] == (_NOTHING_MORE,)
    if not beginning and _starts_others(path):
        raise InvalidInput(
            (ALLOW,),
            f"{path!r} alone would allow every program, as it starts others",
            "how its arguments begin, such as '/usr/bin/git fetch origin $', or a script of your own",
        )
    return _Entry(path, beginning[:-1] if is_all else beginning, is_all)


def _starts_others(path: str) -> bool:
    name = os.path.basename(path)
    return name in _STARTS_OTHERS or _VERSION.sub("", name) in _STARTS_OTHERS


def _entry(path: str) -> str:
    directory, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(directory), name)
