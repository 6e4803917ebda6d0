"""The ways in which a pod is ended.

SIGKILL comes from inside: the kernel ignores a kill -9 of pid 1 from its own namespace, so it takes a pod whose
containers share a process namespace, where pid 1 is the sandbox's. The container then starts again in its place.
"""

from hascheduler.demo.kubernetes.kubectl import Kubectl
from hascheduler.errors import WorldError

KILL = "kill -9 inside"
DELETE = "kubectl delete pod"
FORCE = "kubectl delete pod --force"
WAYS = (KILL, DELETE, FORCE)

_LIST = 'for each in /proc/[0-9]*; do echo "${each#/proc/} $(tr "\\0" " " <"$each/cmdline")"; done'
_KILLED_TOO = 137
"""The status of a shell that went down with the container."""


async def end(kubectl: Kubectl, pod: str, way: str, *, container: str, verb: str) -> None:
    """End it, and return before it is gone. ``verb`` is what its process was told: ``serve`` or ``processor``."""
    if way == KILL:
        await _kill(kubectl, pod, container, verb)
    else:
        how = ("--force", "--grace-period=0") if way == FORCE else ()
        await kubectl.run("delete", "pod", pod, "--wait=false", *how)


async def _kill(kubectl: Kubectl, pod: str, container: str, verb: str) -> None:
    shell = ("exec", pod, "--container", container, "--", "sh", "-c")
    pid = find_process(await kubectl.run(*shell, _LIST), verb)
    if pid is None:
        raise WorldError(f"there is no process `hascheduler {verb}` to be seen in pod {pod}")
    await kubectl.run(*shell, f"kill -9 {pid}", also_good=(_KILLED_TOO,))


def find_process(listing: str, verb: str) -> int | None:
    """The newest ``hascheduler <verb>`` in lines of pids and command lines; what started it comes before it."""
    found = []
    for line in listing.splitlines():
        pid, _, command = line.partition(" ")
        words = command.split()
        is_ours = any("hascheduler" in word.rpartition("/")[2] for word in words) and verb in words
        if is_ours and pid.isascii() and pid.isdecimal() and int(pid) > 1:
            found.append(int(pid))
    return max(found, default=None)
