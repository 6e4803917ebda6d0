"""What a user outside does with the cluster: asks the API through its Service, and reads what the handlers wrote."""

import json
import ssl
from base64 import b64decode
from collections import Counter
from itertools import pairwise
from typing import Any

import httpx2

from tests.system.local_pods.cluster import Cluster
from tests.system.local_pods.kubelet import Pod
from tests.system.processes import eventually

EVERY_MS = 500
_AS_SERVICE = {"sni_hostname": "hascheduler"}
"""A Service's address is that of the pods here: the certificate has to be for its name."""


class Client:
    """With the admin token of the Secret. A request goes to any ready replica, and again to another where one is lost;
    all that it asks for may be asked for twice."""

    def __init__(self, cluster: Cluster) -> None:
        secret = cluster.objects.get("Secret", "hascheduler-scheduler")
        token = b64decode(secret["data"]["admin-token"]).decode()
        self._cluster = cluster
        ca = _authority(cluster)
        self._scheme = "http" if ca is None else "https"
        self._http = httpx2.AsyncClient(timeout=5, headers={"Authorization": f"Bearer {token}"}, verify=ca or True)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        async def answered() -> httpx2.Response | None:
            for endpoint in self._cluster.endpoints("hascheduler"):
                try:
                    answer = await self._http.request(
                        method, f"{self._scheme}://{endpoint}{path}", json=body, extensions=_AS_SERVICE
                    )
                except httpx2.TransportError:
                    continue
                if answer.status_code < 500:
                    return answer
            return None

        answer = await eventually(answered, f"{method} {path}", 60)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    async def close(self) -> None:
        await self._http.aclose()

    async def status(self, pod: Pod, path: str) -> int:
        """What the pod's health port says, without a token."""
        async with httpx2.AsyncClient(timeout=5) as http:
            return (await http.get(f"http://{pod.link.ip}:{pod.template.ports['health']}{path}")).status_code

    async def leader(self, *, not_in_term: int = 0) -> tuple[Pod, int]:
        """The pod that leads, in a later term than ``not_in_term``."""

        async def look() -> tuple[Pod, int] | None:
            leader = (await self.ask("GET", "/v1/cluster"))["leader"]
            if leader is None or leader["term"] <= not_in_term:
                return None
            name = leader["holder"].rpartition(".")[0]
            return next(((pod, leader["term"]) for pod in self._cluster.pods("scheduler") if pod.name == name), None)

        return await eventually(look, f"a leader after term {not_in_term}", 60)

    async def begin(self, name: str) -> None:
        schedule = {
            "name": name,
            "trigger": {"type": "interval", "every": f"{EVERY_MS}ms"},
            "misfire": {"grace": "10m", "catch_up": "all"},
            "job": {"definition": "log", "target": name},
        }
        await self.ask("POST", "/v1/schedules", schedule)

    async def fires(self, name: str, more: int = 6) -> None:
        """Wait until so many more of its nominal times had their effect."""
        goal = len(self.effects(name)) + more

        async def enough() -> bool:
            return len(self.effects(name)) >= goal

        await eventually(enough, f"{name} fires {more} times more", 60)

    async def finish(self, name: str) -> None:
        """Delete the schedule and wait for its last job."""
        await self.ask("DELETE", f"/v1/schedules/{name}")

        async def none_left() -> bool:
            states = [
                await self.ask("GET", f"/v1/jobs?schedule={name}&state={state}&limit=1")
                for state in ("pending", "dispatched", "running")
            ]
            return not any(page["items"] for page in states)

        await eventually(none_left, f"the jobs of {name} end", 60)

    def effects(self, name: str) -> dict[int, list[int]]:
        """The attempts that had an effect, by nominal time, from what the processors wrote to their output."""
        found: dict[int, list[int]] = {}
        for pod in [*self._cluster.pods("processor"), *self._cluster.gone]:
            lines = pod.log.splitlines() if pod.component == "processor" else []
            for line in lines:
                if line.startswith('{"effect"') and (effect := json.loads(line))["schedule"] == name:
                    found.setdefault(effect["nominal_ms"], []).append(effect["attempt"])
        return found

    def assert_all_fired(self, name: str, *, once: bool) -> None:
        """Every nominal time from the first to the last had an effect; no attempt had two, with ``once`` no job."""
        effects = self.effects(name)
        gaps = [(before, after) for before, after in pairwise(sorted(effects)) if after - before != EVERY_MS]
        assert not gaps, f"{name} missed nominal times in {gaps}"
        doubled = {at: attempts for at, attempts in effects.items() if max(Counter(attempts).values()) > 1}
        assert not doubled, f"attempts with two effects: {doubled}"
        if once:
            assert all(len(attempts) == 1 for attempts in effects.values())


def _authority(cluster: Cluster) -> ssl.SSLContext | None:
    """What the API is trusted by; None where it speaks HTTP."""
    if not any(one["metadata"]["name"] == "hascheduler-tls" for one in cluster.objects.of("Secret")):
        return None
    secret = cluster.objects.get("Secret", "hascheduler-tls")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=b64decode(secret["data"]["ca.crt"]).decode())
    return context
