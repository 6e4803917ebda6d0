"""`AsyncScheduler` and its parts, for programs with an asyncio loop."""
