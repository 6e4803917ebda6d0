"""RabbitMQ as the transport, behind `hascheduler.ports.Transport` and `hascheduler.ports.Deliveries`.

The job document is the outbox, so this room may lose any message and deliver any message twice: dispatch messages are
not persistent, an expired queue takes its messages along, and a publish with an unknown fate is `Confirm.UNKNOWN`. It
must never claim a confirmation that it does not have, hang, or stay disconnected.

Publishing and consuming have separate connections: a broker short of memory stops reading from publishers, and
acknowledgements must still get through. No error text and no log line holds a URL.
"""
