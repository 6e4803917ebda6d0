"""The command line: one file a command, each loaded only when it is asked for, so that ``--help`` and errors are quick.

Who is at fault decides the exit status: 2 for the caller (one line on standard error), 1 for the world (one line),
130 for Ctrl-C (nothing). What is left is a defect of ours and shows its traceback.
"""
