"""RabbitMQ as the transport, behind `hascheduler.ports.Transport` and `hascheduler.ports.Deliveries`.

The job document is the outbox, so this room may lose any message and deliver any twice: dispatch messages are not
persistent, a queue that expired takes its messages along, and a publish of which the fate is unknown is just said to
be `Confirm.UNKNOWN`. What it must not do is claim a confirmation that it does not have, hang, or stay away.

Publishing and consuming have separate connections: a broker that is short of memory stops reading from those that
publish, and acknowledgements must still get through. No text of an error or a log line holds a URL.
"""
