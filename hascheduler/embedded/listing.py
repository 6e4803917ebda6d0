"""Where everything of a stack is, as a table for people."""

from rich.table import Table

from hascheduler.embedded.stack import Stack


def list_stack(stack: Stack) -> Table:
    """Each process with its pid, its address and its log; then the servers they use."""
    table = Table(
        title=f"hascheduler, transport {stack.transport}", title_justify="left", box=None, padding=(0, 2, 0, 0)
    )
    for column in ("process", "pid", "where", "log"):
        table.add_column(column, overflow="fold")
    for name, child in stack.replicas.items():
        table.add_row(name, str(child.pid), f"{stack.urls[name]}  (API reference: /docs)", str(child.log))
    for name, child in stack.processors.items():
        table.add_row(name, str(child.pid), "", str(child.log))
    for name, where in stack.servers.items():
        table.add_row(name, "", where, "")
    return table
