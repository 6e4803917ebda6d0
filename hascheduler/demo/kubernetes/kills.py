"""The ways to end a pod, and for how long nothing was decided then.

SIGKILL comes from inside: the kernel ignores a kill -9 of pid 1 from its own namespace, so it takes a pod whose
containers share a process namespace, where pid 1 is the sandbox's. The container then starts again in its place.

A deleted pod leads on for as long as its shutdown takes, so the time from the command says little. What counts is the
gap, as a living replica sees the journal grow: from the last entry seen of the old term to the first decision of a
later one.
"""

import asyncio

from hascheduler.demo.environment import CurrentLeader
from hascheduler.demo.kubernetes.kubectl import Kubectl, poll_until
from hascheduler.demo.replica_api import ReplicaApi
from hascheduler.errors import StoreUnavailable, WorldError

KILL = "kill -9 inside"
DELETE = "kubectl delete pod"
FORCE = "kubectl delete pod --force"
WAYS = (KILL, DELETE, FORCE)

_LIST = 'for each in /proc/[0-9]*; do echo "${each#/proc/} $(tr "\\0" " " <"$each/cmdline")"; done'
_KILLED_TOO = 137
"""The status of a shell that went down with the container."""
_TAKEOVER_PATIENCE_S = 90.0
_EVERY_S = 0.02
_BARRIER = 2
"""The first entry that is seen of a term may be the one before it began, the next says that it began."""


async def end_pod(kubectl: Kubectl, pod: str, way: str, *, container: str, verb: str) -> None:
    """End the pod, and return before it is gone. ``verb`` is its process's command: ``serve`` or ``processor``."""
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


async def measure_takeover(api: ReplicaApi, leader: CurrentLeader, url: str = "") -> int:
    """Wait until a term after the leader's has decided something, and return the gap in ms.

    Right to within the time of some requests, and never less than what it was. ``url``: the one address that is asked,
    which may be that of the very pod that was ended; "": those of all replicas are.
    """
    loop = asyncio.get_running_loop()
    last_s, last_seq = loop.time(), 0
    first_seq: int | None = None

    async def look() -> float | None:
        nonlocal last_s, last_seq, first_seq
        asked_s = loop.time()
        snapshot = await api.snapshot(avoid=leader.name)
        seq = (snapshot.cluster["journal_seq"] or 0) if snapshot else 0
        now = snapshot.cluster["leader"] if snapshot else None
        if now is None:
            return None
        if now["term"] <= leader.term:
            if seq > last_seq:
                last_s, last_seq = asked_s, seq
            return None
        first_seq = seq if first_seq is None else first_seq
        return loop.time() - last_s if seq >= first_seq + _BARRIER else None

    what = f"a leader after term {leader.term} that decides"
    try:
        gap_s = await poll_until(look, what, patience_s=_TAKEOVER_PATIENCE_S, every_s=_EVERY_S)
    except StoreUnavailable as no_leader:
        await _demand_answer(api, url, leader, no_leader)
        raise
    return round(gap_s * 1_000)


async def _demand_answer(api: ReplicaApi, url: str, leader: CurrentLeader, no_leader: StoreUnavailable) -> None:
    """A leader that does not answer proves nothing about who leads."""
    if not url:
        return
    try:
        await api.ask(lambda scheduler: scheduler.cluster.status())
    except StoreUnavailable as trouble:
        raise StoreUnavailable(
            f"--url {url} does not answer since the leader's pod {leader.name} was ended ({trouble}); name an address "
            "that leads to the other replicas too, such as the Service's, or leave --url out"
        ) from no_leader
