"""Where everything of a stack is, as a table for people."""

from rich.table import Table

from hascheduler.embedded.stack import Stack


def list_stack(stack: Stack) -> Table:
    """Each process with its pid, its address and its log."""
    table = Table(
        title=f"hascheduler, transport {stack.transport}; the API reference is at /docs of each replica",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in ("process", "pid", "where", "log"):
        table.add_column(column, overflow="fold")
    for name, child in stack.replicas.items():
        table.add_row(name, str(child.pid), stack.urls[name], str(child.log))
    for name, child in stack.processors.items():
        table.add_row(name, str(child.pid), "", str(child.log))
    return table


def list_servers(stack: Stack) -> str:
    """The servers' addresses, a line each, to be copied whole."""
    return "\n".join(f"{name:<11}  {where}" for name, where in stack.servers.items())
