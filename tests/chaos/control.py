"""What a process is asked for in the chaos: by its environment, and by a signal."""

import signal

CONTROL = "CHAOS_CONTROL"
"""The folder by whose files it is troubled while it runs."""
SINK = "CHAOS_EFFECTS"
"""The file that its handlers append to."""
NAME = "CHAOS_NAME"
"""As whom they do."""
BUG = "CHAOS_BUG"
"""What is planted in it, if anything is."""
TELL_TASKS = signal.SIGUSR1
"""To write to its log where each of its tasks waits."""
