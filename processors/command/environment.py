"""The environment of the child: built from nothing, so that no secret of the processor leaks into it.

A submitter of jobs is often trusted less than the operator who lists the programs, and a variable may make an allowed
program load other code. So the payload sets those variables alone that the operator has listed:
``HASCHEDULER_COMMAND_ENV``, names with commas, where ``APP_*`` stands for all that begin so; without it ``TZ``,
``LANG`` and ``LC_*``. Those known to decide which code runs are refused even where a pattern would let them in.
"""

import re
from collections.abc import Mapping

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import format_instant
from hascheduler.processor import JobContext

ENV = "HASCHEDULER_COMMAND_ENV"
_ENV_DEFAULT = "TZ,LANG,LC_*"
_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_PATH_DEFAULT = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RESERVED = frozenset(
    {"PATH", "IFS", "ENV", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "ZDOTDIR"}  # shells
    | {"GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES", "OPENSSL_CONF", "OPENSSL_MODULES"}
    | {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH"}
    | {"NODE_OPTIONS", "NODE_PATH", "PHPRC", "PHP_INI_SCAN_DIR"}
    | {"EDITOR", "VISUAL", "PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE", "TAR_OPTIONS", "RSYNC_RSH"}
)
_RESERVED_PREFIXES = (
    "HASCHEDULER_",  # they must be true, and are the processor's
    *("LD_", "DYLD_"),  # the dynamic loader
    *("PYTHON", "PERL", "RUBY", "GIT_"),  # what loads code, or starts programs, on request
)


def is_reserved(name: str) -> bool:
    """Whether the payload may not set it; in any case, as a few programs do not tell them apart."""
    upper = name.upper()
    return upper in _RESERVED or upper.startswith(_RESERVED_PREFIXES)


def child_environment(env: Mapping[str, str], job: JobContext, own: Mapping[str, str]) -> dict[str, str]:
    """All that the child sees; ``own`` is the processor's environment. A name in ``env`` that is not listed there is an
    `InvalidInput`, as is a list that can't be read."""
    _demand_listed(env, own.get(ENV, _ENV_DEFAULT))
    environment = {
        **env,
        "PATH": own.get("PATH") or _PATH_DEFAULT,
        "LANG": env.get("LANG") or own.get("LANG") or "C.UTF-8",
        "HASCHEDULER_JOB_ID": job.id,
        "HASCHEDULER_ATTEMPT": str(job.attempt),
    }
    if job.schedule is not None:
        environment["HASCHEDULER_SCHEDULE"] = job.schedule
    if job.nominal_ms is not None:
        environment["HASCHEDULER_NOMINAL_AT"] = format_instant(job.nominal_ms)
    return environment


def _demand_listed(env: Mapping[str, str], setting: str) -> None:
    listed = [text for part in setting.split(",") if (text := part.strip())]
    for pattern in listed:
        if not _PATTERN.fullmatch(pattern):
            raise InvalidInput((ENV,), f"{pattern!r} is not understood", "names of variables, or 'APP_*', with commas")
    for name in env:
        if not any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in listed):
            expected = f"one of {', '.join(listed)}" if listed else f"none, as {ENV} on the processor says"
            raise InvalidInput(("payload", "env", name), f"{name} is not for the payload to set", expected)
