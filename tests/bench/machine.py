"""What the figures were measured on."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import psutil

from hascheduler.embedded.servers import find_mongod, find_rabbitmq

_ELSEWHERE = "one that the environment names"


def describe_machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "mongodb": _mongodb(),
        "rabbitmq": _rabbitmq(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _mongodb() -> str:
    if os.environ.get("HASCHEDULER_MONGODB_URI"):
        return _ELSEWHERE
    told = subprocess.run([find_mongod(), "--version"], capture_output=True, text=True, check=True).stdout
    return told.splitlines()[0].removeprefix("db version v")


def _rabbitmq() -> str:
    """Debian's package has its version in the name of a folder."""
    if os.environ.get("HASCHEDULER_AMQP_URL"):
        return _ELSEWHERE
    server = find_rabbitmq()
    if server is None:
        return "none"
    folders = sorted(Path(server).parents[1].glob("lib/rabbitmq_server-*"))
    return folders[-1].name.rpartition("-")[2] if folders else "unknown"
