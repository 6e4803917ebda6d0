"""The whole system runs with the secrets that `k8s/make-secrets` makes, and its users may do nothing more."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aio_pika
import pytest
import yaml
from aio_pika import Channel
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused
from pymongo import IndexModel
from pymongo.errors import OperationFailure

from hascheduler.errors import InvalidInput
from hascheduler.model.collection import Collection
from hascheduler.mongo.schema.indexes import SUPERSEDED
from hascheduler.rabbitmq.connection import DISPATCH_EXCHANGE, require_access
from tests.integration.bootstrap.deployment import PROCESSOR, SCHEDULER, Deployment, deployed, done, hascheduler
from tests.integration.bootstrap.members import Client
from tests.system.processes import Processes, eventually

_UNAUTHORIZED = 13
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
async def deployment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deployment]:
    async with deployed(tmp_path_factory.mktemp("deployment")) as made:
        yield made


@pytest.fixture
async def processes(deployment: Deployment, tmp_path: Path) -> AsyncIterator[Processes]:
    settings = {
        **deployment.settings(SCHEDULER),
        "HASCHEDULER_EVENTS_EXCHANGE": "hascheduler.events",
        "HASCHEDULER_HEARTBEAT_INTERVAL": "300ms",
        "HASCHEDULER_HEARTBEAT_TIMEOUT": "1500ms",
    }
    running = Processes(tmp_path, settings, deployment.admin_uri, "hascheduler")
    yield running
    await running.stop()


@pytest.mark.timeout(300)  # five starts of real processes
async def test_the_whole_system_runs_under_its_users(deployment: Deployment, processes: Processes) -> None:
    of_processor = deployment.settings(PROCESSOR)
    # The processor first: it may make no collection, and needs none to be there.
    await processes.processor("worker", slots=8, **of_processor)
    await processes.together("one", "two")
    await done("migrate", **processes.environment)
    await processes.schedule("tick")
    await _cancel_a_running_job(processes)
    leader, term = await processes.leader()
    await leader.kill()
    await processes.leader(not_in_term=term)
    await _nonsense_is_parked(deployment, processes)
    # The second transport watches the jobs instead of a queue.
    over_mongodb = {"HASCHEDULER_TRANSPORT": "mongo"}
    await processes.processors["worker"].terminate()
    await processes.processor("watcher", slots=8, **of_processor, **over_mongodb)
    await processes.replica("three", **over_mongodb)
    await next(one for one in processes.replicas.values() if one.running).terminate()
    await _cancel_a_running_job(processes)
    await processes.settled()
    processes.assert_no_effect_twice()
    processes.assert_no_gap("tick", 200, at_least=5)
    for log in processes.folder.glob("*.err"):
        text = log.read_text()
        assert "Unauthorized" not in text, log
        assert "ACCESS_REFUSED" not in text, log


async def _cancel_a_running_job(processes: Processes) -> None:
    """It takes a message to the processor, or a look at the job, and two writes of it there."""
    id = (await processes.post("/v1/jobs", {"definition": "sleep", "payload": {"seconds": 600}}))["id"]

    async def is_in(state: str) -> bool:
        return bool((await processes.get(f"/v1/jobs/{id}"))["state"] == state)

    await eventually(lambda: is_in("running"), "it runs")
    await processes.post(f"/v1/jobs/{id}/cancel", {})
    await eventually(lambda: is_in("cancelled"), "it is cancelled")


async def _nonsense_is_parked(deployment: Deployment, processes: Processes) -> None:
    [processor] = await processes.database.processors.find().to_list()
    async with await aio_pika.connect(deployment.read(SCHEDULER, "amqp-url")) as connection:
        exchange = await (await connection.channel()).get_exchange(DISPATCH_EXCHANGE)
        await exchange.publish(aio_pika.Message(b"nonsense"), routing_key=processor["_id"], mandatory=True)

    async def is_parked() -> bool:
        found = await processes.database.processors.find_one({"_id": processor["_id"]})
        return found is not None and found["parked"] == 1

    await eventually(is_parked, "the processor has parked it")


async def test_the_scheduler_may_do_no_more_in_mongodb_than_it_needs(deployment: Deployment) -> None:
    async with Client(deployment.read(SCHEDULER, "mongodb-uri")) as client:
        ours = client.hascheduler
        await ours.jobs.insert_one({"_id": "mine"})
        await _refused(
            ours.drop_collection("jobs"),
            client.drop_database("hascheduler"),
            ours.command("collMod", "jobs", validator={}),
            ours.verdicts.drop_index("verdict_decided"),
            client.other.things.find_one({}),
            client.other.things.insert_one({}),
            client.admin.system.users.find_one({}),
            ours.command("createUser", "friend", pwd="x", roles=[]),
            ours.command("updateUser", "scheduler", roles=["dbOwner"]),
            ours.command("updateRole", "scheduler", privileges=[]),
            client.admin.command("replSetGetConfig"),
            client.admin.command("shutdown"),
        )


async def test_the_migration_of_the_manifests_comes_back_for_superseded_indexes_and_drops_them(
    deployment: Deployment,
) -> None:
    manifest = yaml.safe_load((ROOT / "k8s/base/bootstrap/deployment.yaml").read_text())
    initial = manifest["spec"]["template"]["spec"]["initContainers"]
    [migration] = [container["args"] for container in initial if container["name"] == "migrate"]
    superseded = set(SUPERSEDED[Collection.JOBS])
    settings = deployment.settings(SCHEDULER)
    await done(*migration, **settings)
    async with Client(deployment.admin_uri) as admin:
        jobs, replicas = admin.hascheduler.jobs, admin.hascheduler.replicas
        await jobs.create_indexes([IndexModel([(name, 1), ("_id", 1)], name=name) for name in superseded])
        await replicas.insert_one({"_id": "old", "expire_at": datetime.now(UTC) + timedelta(hours=1), "reads": 1})
        kept = await hascheduler(*migration, **settings)
        assert (kept.status, kept.out.count("migrate again once it is gone")) == (1, 1), kept.err
        assert superseded <= set(await jobs.index_information())
        await replicas.delete_one({"_id": "old"})
        dropped = await done(*migration, **settings)
        assert dropped.out.count("dropped the index jobs.") == len(superseded)
        assert not superseded & set(await jobs.index_information())


async def test_a_processor_may_do_no_more_in_mongodb_than_it_needs(deployment: Deployment) -> None:
    async with Client(deployment.admin_uri) as admin:
        await admin.hascheduler.jobs.update_one({"_id": "theirs"}, {"$set": {"state": "pending"}}, upsert=True)
    async with Client(deployment.read(PROCESSOR, "mongodb-uri")) as client:
        ours = client.hascheduler
        assert await ours.jobs.find_one({"_id": "theirs"})
        await _refused(
            ours.jobs.insert_one({}),
            ours.jobs.delete_one({"_id": "theirs"}),
            ours.jobs.create_index("x"),
            ours.drop_collection("jobs"),
            ours.create_collection("more"),
            ours.definitions.update_one({"_id": "x"}, {"$set": {"tier": 1}}),
            ours.meta.insert_one({}),
            *(
                ours[name].find_one({})
                for name in ("tokens", "audit", "leases", "journal", "schedules", "verdicts", "accounts", "tenants")
            ),
            ours.command("createUser", "friend", pwd="x", roles=[]),
            client.other.things.find_one({}),
        )


async def _refused(*acts: Awaitable[object]) -> None:
    for act in acts:
        with pytest.raises(OperationFailure) as refused:
            await act
        assert refused.value.code == _UNAUTHORIZED, refused.value


async def _consume(channel: AbstractChannel, name: str) -> None:
    await (await channel.get_queue(name, ensure=False)).get()


async def _publish(channel: AbstractChannel, exchange: str) -> None:
    to = channel.default_exchange if exchange == "amq.default" else await channel.get_exchange(exchange, ensure=False)
    await to.publish(aio_pika.Message(b""), "hascheduler.processor.theirs")


@pytest.mark.parametrize(
    ("secret", "act", "name"),
    [
        (SCHEDULER, Channel.declare_queue, "hascheduler.processor.mine"),
        (SCHEDULER, Channel.declare_exchange, "hascheduler.dispatch.mine"),
        (SCHEDULER, _consume, "hascheduler.processor.theirs"),
        (SCHEDULER, _publish, "amq.default"),
        (PROCESSOR, Channel.declare_queue, "not.hascheduler.processor.mine"),
        (PROCESSOR, Channel.declare_queue, "hascheduler.processor."),
        (PROCESSOR, Channel.declare_exchange, "hascheduler.events"),
        (PROCESSOR, _publish, "hascheduler.dispatch"),
        (PROCESSOR, _publish, "hascheduler.events"),
        (PROCESSOR, _consume, "hascheduler.parked"),
    ],
)
async def test_the_broker_refuses(deployment: Deployment, secret: str, act: Callable[..., Any], name: str) -> None:
    async with await aio_pika.connect(deployment.read(secret, "amqp-url")) as connection:
        channel = await connection.channel()
        with pytest.raises(ChannelAccessRefused):
            await act(channel, name)


async def test_the_broker_knows_no_guest(deployment: Deployment) -> None:
    url = deployment.read(SCHEDULER, "amqp-url")
    with pytest.raises(InvalidInput, match="refuses user 'guest'"):
        await require_access(f"amqp://guest:guest@{url.rpartition('@')[2]}")


@pytest.mark.parametrize(("secret", "lacks"), [(SCHEDULER, "processors"), (PROCESSOR, "replicas")])
async def test_the_doctor_tells_whose_user_it_is(deployment: Deployment, secret: str, lacks: str) -> None:
    ended = await hascheduler("doctor", "--json", **deployment.settings(secret))
    found = {(one["server"].partition("://")[0], one["what"]): one for one in json.loads(ended.out)["requirements"]}
    assert found["mongodb", "change stream"]["state"] == ("met" if secret == SCHEDULER else "unknown")
    assert found["mongodb", "oplog"]["state"] == "unknown"  # no right to read it, and none is needed
    assert found["mongodb", "rights"]["state"] == ("met" if secret == SCHEDULER else "warning")
    assert found["amqp", "rights"]["state"] == "warning"
    assert f"not enough for {lacks}" in found["amqp", "rights"]["found"]
    assert ended.status == 0, ended.out
    assert deployment.settings(secret)["HASCHEDULER_MONGODB_URI"].split(":")[2].split("@")[0] not in ended.out


async def test_the_doctor_of_all_rights_misses_nothing_and_of_none_ends_with_1(deployment: Deployment) -> None:
    ended = await hascheduler("doctor", deployment.admin_uri, "--json")
    found = {one["what"]: one["state"] for one in json.loads(ended.out)["requirements"]}
    assert (ended.status, set(found.values()) <= {"met", "warning"}) == (0, True), ended.out
    nowhere = await hascheduler("doctor", "mongodb://127.0.0.1:1/", "amqp://127.0.0.1:1/", "--json")
    assert [one["state"] for one in json.loads(nowhere.out)["requirements"]] == ["missing", "missing"]
    assert nowhere.status == 1
