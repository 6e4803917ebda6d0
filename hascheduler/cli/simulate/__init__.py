"""The commands ``hascheduler simulate`` and ``record``: run scenarios without a server, record a leader's decisions."""
