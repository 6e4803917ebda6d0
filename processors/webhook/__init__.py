"""``webhook``: sends one HTTP request for each attempt, and returns what was answered.

The payload::

    {"url": "https://example.com/hooks/7",   http or https, no credentials in it
     "method": "POST",                       the default; GET, HEAD, PUT, PATCH, DELETE, OPTIONS
     "headers": {"X-Team": "a"},             none of those that this processor sets
     "body": {"any": "JSON"},                sent as JSON; or else
     "body_template": "${job_id} is due",    a text, filled in (`processors.webhook.template`)
     "values": {"who": "me"},                what the template may use besides the job, as ${values.who}
     "timeout": "10s",                       for all of it, redirects included; 100ms to 10m
     "expect": [200, 201],                   what is a success; default 200 to 299
     "retry_on": [503],                      what may succeed later; default 408 425 429 500 502 503 504
     "follow_redirects": false}              at most 5, each checked like the first

The result is ``{"status", "headers", "body", "truncated"}``: a few headers, and of the body, as text, at most 64 KiB.

Delivery is at least once. Two headers let the receiver have its effect once: ``Idempotency-Key``, the job's id, is the
same for every attempt; ``X-Hascheduler-Attempt`` grows with each, so a receiver that has seen a higher one refuses the
lower (a fencing token).

How an attempt fails: what can never succeed is a `CallerError` (a bad payload or template, a host or address that is
not allowed, a status that is neither expected nor in ``retry_on``); what may succeed later is a `WorldError` (no
connection, no answer in time, a status in ``retry_on``).

The operator of the processor says where requests may go:

* ``HASCHEDULER_WEBHOOK_ALLOW``: host names, comma-separated; ``*.example.com`` is every name below example.com, ``*``
  every name. Unset or empty: every name.
* ``HASCHEDULER_WEBHOOK_ALLOW_PRIVATE``: networks such as ``10.96.0.0/12``, comma-separated. Addresses that are not of
  the public internet are refused outside of these, whatever name leads to them.

A connection goes to exactly the address that was checked: a name is resolved once, so no second answer of the DNS can
lead elsewhere. Proxies and credentials of the environment are not used; ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` are.
"""

import os
from typing import Any

from hascheduler.processor import Handlers, JobContext
from processors.payloads import read_payload
from processors.webhook.delivery import deliver
from processors.webhook.destinations import Destinations
from processors.webhook.payload import WebhookPayload

handlers = Handlers()


@handlers.handler("webhook")
async def webhook(job: JobContext) -> dict[str, Any]:
    payload = read_payload(WebhookPayload, job.payload)
    return await deliver(payload, job, Destinations.of_environment(os.environ))
