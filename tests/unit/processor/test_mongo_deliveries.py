"""The transport that needs nothing but MongoDB, without one."""

from hascheduler.model.message import Message, MessageKind
from hascheduler.mongo.transport import MongoTransport
from hascheduler.ports import Confirm


async def test_the_transport_has_sent_everything_already() -> None:
    transport = MongoTransport()
    assert transport.accepting
    assert await transport.publish([("p", Message(MessageKind.RUN, "a", 1))]) == [Confirm.CONFIRMED]
