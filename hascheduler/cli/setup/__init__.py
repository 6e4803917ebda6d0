"""The commands that an operator runs on servers: ``bootstrap mongodb``, ``migrate`` and ``check``."""
