"""Servers for development and tests, on this machine alone: MongoDB from a Python wheel, RabbitMQ from Debian.

Each is an async context manager that yields its address, listens on loopback only, keeps its data in one folder, and is
stopped by pid on exit. `stack` puts a whole system together from them. Never for production.
"""
