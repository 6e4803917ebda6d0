"""The story of the kind overlay: apply it, make a schedule, lose the leader, lose the servers, and miss nothing."""

import pytest

from hascheduler.demo.kubernetes import KILL_SCRIPT
from tests.manifests.rendering import KIND, rendered
from tests.system.local_pods.client import Client
from tests.system.local_pods.cluster import Cluster
from tests.system.local_pods.conftest import Apply
from tests.system.local_pods.pod import Pod

pytestmark = [pytest.mark.timeout(420)]

READY_LIMIT_S = 120
REACHED = [
    ("scheduler", "mongodb", 27017, True),
    ("scheduler", "rabbitmq", 5672, True),
    ("scheduler", "scheduler", 7070, True),
    ("scheduler", "processor", 7070, True),
    ("scheduler", "scheduler", 8080, False),
    ("scheduler", "processor", 9090, False),
    ("scheduler", "rabbitmq", 15692, False),
    ("processor", "mongodb", 27017, True),
    ("processor", "rabbitmq", 5672, True),
    ("processor", "scheduler", 7070, False),
    ("processor", "scheduler", 8080, False),
    ("processor", "processor", 9090, False),
    ("processor", "processor", 7070, False),
    ("rabbitmq", "mongodb", 27017, False),
    ("mongodb", "rabbitmq", 5672, False),
]


async def test_it_comes_up_and_goes_on_whatever_pod_is_lost(apply: Apply) -> None:
    cluster = await apply(rendered(KIND).copy())
    await cluster.all_ready(READY_LIMIT_S)
    # Nobody was restarted, however long it had to wait for the others.
    assert not [pod.said for pod in _all(cluster) if pod.said], cluster.describe()
    await _confined(cluster)
    await _nobody_else_is_reached(cluster)
    client = Client(cluster)
    try:
        await _leaders_lost(cluster, client)
        await _a_processor_drained(cluster, client)
        await _servers_lost(cluster, client)
        await _bootstrapped_again(cluster, client)
    finally:
        await client.close()


def _all(cluster: Cluster) -> list[Pod]:
    return [
        pod for name in ("bootstrap", "mongodb", "rabbitmq", "scheduler", "processor") for pod in cluster.pods(name)
    ]


async def _confined(cluster: Cluster) -> None:
    """The rehearsal is as strict as a kubelet: no root, no capability, nothing to write but volumes."""
    for component, uid, may_write in (
        ("scheduler", 10001, "none"),
        ("processor", 10001, "/tmp"),
        ("mongodb", 999, "/data/db"),
    ):
        [container, *_] = [pod.container for pod in cluster.pods(component)]
        _, said = await container.execute(["cat", "/proc/self/status"], 10)
        status = {name: value.split() for name, _, value in (line.partition(":") for line in said.splitlines())}
        assert status["Uid"] == [str(uid)] * 4
        assert {int(status[name][0], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {0}
        assert status["NoNewPrivs"] == ["1"]
        for folder in ("/", "/tmp", "/run", "/etc", "/data/db", "/run/secrets/hascheduler"):
            wrote, _ = await container.execute(["touch", f"{folder}/mine"], 10)
            assert (wrote == 0) is (folder == may_write), f"{component}: {folder}"


async def _nobody_else_is_reached(cluster: Cluster) -> None:
    """What the policies name is reached, from where they say; the system needs the one, and nobody the other."""
    for source, component, port, expected in REACHED:
        from_pod = cluster.pods(source)[0]
        to_pod = next(pod for pod in cluster.pods(component) if pod is not from_pod)
        knock = f"exec 3<>/dev/tcp/{to_pod.link.ip}/{port}"
        status, said = await from_pod.container.execute(["bash", "-c", knock], 10)
        assert (status == 0) is expected, f"{source} to {component}:{port}: {said}"


async def _leaders_lost(cluster: Cluster, client: Client) -> None:
    await client.begin("leaders")
    await client.fires("leaders")
    leader, term = await client.leader()
    for pod in cluster.pods("scheduler"):
        assert await client.status(pod, "/readyz") == 200
        assert await client.status(pod, "/leaderz") == (200 if pod is leader else 503)
    for pod in (*cluster.pods("scheduler"), *cluster.pods("processor")):
        assert await client.status(pod, "/metrics") == 200
    # `kubectl delete pod`: it hands over, and ends by itself within its grace.
    await cluster.delete(leader)
    assert (leader.said, leader.container.exit_codes) == ([], [0])
    leader, term = await client.leader(not_in_term=term)
    await client.fires("leaders")
    # A kill -9 from inside: the container starts again in the same pod.
    await _kill_inside(leader)
    killed, (_, term) = leader, await client.leader(not_in_term=term)
    await client.fires("leaders")
    await _ready_again(cluster)
    assert killed.restarts == 1
    # `kubectl delete pod --force --grace-period=0`
    leader, term = await client.leader()
    await cluster.delete(leader, force=True)
    await client.leader(not_in_term=term)
    await client.fires("leaders")
    await client.finish("leaders")
    client.assert_all_fired("leaders", once=True)
    await _ready_again(cluster)


async def _kill_inside(pod: Pod) -> None:
    """As the demo does it through `kubectl exec`; process 1 of a shared namespace is another."""
    await pod.container.execute(["sh", "-c", KILL_SCRIPT], 10)


async def _a_processor_drained(cluster: Cluster, client: Client) -> None:
    await client.begin("draining")
    await client.fires("draining")
    pod = cluster.pods("processor")[0]
    await cluster.delete(pod)
    assert (pod.said, pod.container.exit_codes) == ([], [0])
    await _ready_again(cluster)
    await client.fires("draining")
    await client.finish("draining")
    client.assert_all_fired("draining", once=True)


async def _servers_lost(cluster: Cluster, client: Client) -> None:
    """Work goes on with both pods new, at other addresses, with the data that they had."""
    await client.begin("servers")
    await client.fires("servers")
    for component in ("rabbitmq", "mongodb"):
        [pod] = cluster.pods(component)
        await cluster.delete(pod)
        assert pod.said == [], cluster.describe()
        await _ready_again(cluster)
        await client.fires("servers")
    await client.finish("servers")
    # An attempt whose end could not be written is lost, and another made.
    client.assert_all_fired("servers", once=False)
    restarted = [pod.name for pod in _all(cluster) if pod.restarts and not pod.name.startswith("scheduler")]
    assert restarted == [], cluster.describe()


async def _bootstrapped_again(cluster: Cluster, client: Client) -> None:
    [pod] = cluster.pods("bootstrap")
    await cluster.delete(pod)
    await _ready_again(cluster)
    [pod] = cluster.pods("bootstrap")
    assert '"scheduler":"unchanged","processor":"unchanged","admin":"unchanged"' in pod.containers[0].log.read_text()


async def _ready_again(cluster: Cluster) -> None:
    await cluster.all_ready(READY_LIMIT_S)
