"""Nonsense in the database and in the queues is set aside and reported; everything else goes on."""

import aio_pika

from tests.system.processes import Processes, eventually


async def test_malformed_documents_and_messages_stop_nothing(processes: Processes, amqp_url: str) -> None:
    await processes.replica("one")
    await processes.processor("worker")
    await processes.schedule("good")
    await processes.database.schedules.insert_many(
        [
            {"_id": "no-trigger", "rev": 1},
            {"_id": "bad-type", "rev": 1, "trigger": {"type": "moon"}, "job": {}, "cursor_ms": 0, "created_at_ms": 0},
            {"_id": 7, "rev": "x"},
        ]
    )
    await processes.database.jobs.insert_one({"_id": "job:junk", "state": "banana", "rev": 1})
    await processes.database.processors.insert_one({"_id": "ghost", "definitions": "all"})
    worker = await processes.database.processors.find_one({"name": "worker"})
    assert worker is not None
    connection = await aio_pika.connect(amqp_url)
    async with connection:
        channel = await connection.channel()
        exchange = await channel.get_exchange("hascheduler.dispatch")
        for body in (
            b"",
            b"\xff\xfe",
            b"{",
            b'{"v": 1}',
            b'{"v":1,"kind":"run","job":"nobody","attempt":1}',
            b"[]" * 5_000,
        ):
            await exchange.publish(aio_pika.Message(body), routing_key=worker["_id"])

    async def reported() -> bool:
        cluster = await processes.get("/v1/cluster")
        quarantined = {(item["collection"], item["id"]) for item in cluster["quarantine"]}
        parked = {item["name"]: item["parked"] for item in (await processes.get("/v1/processors"))["items"]}
        return len(quarantined) == 5 and parked["worker"] == 5

    await eventually(reported, "5 documents are quarantined and 5 messages parked")
    before = len(processes.nominal_times("good"))

    async def goes_on() -> bool:
        return len(processes.nominal_times("good")) >= before + 5

    await eventually(goes_on, "the good schedule goes on")
    await processes.database.schedules.delete_many({"_id": {"$ne": "good"}})

    async def mended() -> bool:
        return len((await processes.get("/v1/cluster"))["quarantine"]) == 2

    await eventually(mended, "deleted documents leave the quarantine")
    await processes.database.jobs.delete_one({"_id": "job:junk"})
    await processes.settled()
    processes.assert_no_gap("good", 200, 5)
    processes.assert_no_effect_twice()
