"""``/v1/work``: processors without access to the broker or the database register, fetch, start and finish over HTTP.

`routes` has the protocol, `schemas` the wire format; `hascheduler.api.admission.worker_registrations` limits how many
processors may register, and which token may speak for which of them.
"""
