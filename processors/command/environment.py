"""The environment of the child: built from nothing, so that no secret of the processor leaks into it.

Whoever may submit a job is often trusted less than whoever lists the programs. A variable that makes an allowed
program load other code would turn the list into decoration, so those that are known to do so are refused. That is a
net, not a wall: a program may have such variables of its own, and then a script that unsets them is what to allow.
"""

from collections.abc import Mapping

from hascheduler.model.instants import format_instant
from hascheduler.processor import JobContext

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
    *("PYTHON", "PERL", "RUBY", "GIT_"),  # what loads code, or starts programs, on being told to
)


def is_reserved(name: str) -> bool:
    """Whether the payload may not set it; in any case, as a few programs do not tell them apart."""
    upper = name.upper()
    return upper in _RESERVED or upper.startswith(_RESERVED_PREFIXES)


def child_environment(env: Mapping[str, str], job: JobContext, own: Mapping[str, str]) -> dict[str, str]:
    """All that the child sees; ``env`` has been checked, ``own`` is the processor's environment."""
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
