"""What the user sees: answers as tables, pages or one JSON document on standard output, log lines on standard error."""
