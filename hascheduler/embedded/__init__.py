"""Servers for development and tests, on this machine alone: MongoDB from a Python wheel, RabbitMQ from Debian.

Each is an async context manager that yields where to reach it, listens on loopback only, keeps its data in one folder,
and is stopped by pid on the way out. `stack` puts a whole system together from them. Never for production.
"""
