"""Output for the user: answers as tables, pages or one JSON document on standard output, logs on standard error."""
