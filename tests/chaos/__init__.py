"""Real processes on real servers in real trouble, held to the same promises as the simulations (`tests.checkers`).

::

    rows        what goes wrong, one function a row; `ROWS` names them all
    story       one row, start to end: start, load, trouble, peace, judgement
    cluster     replicas and processors: start, kill, stop, wake, ask who leads
    servers     mongod, alone or three, and RabbitMQ, each to be stopped, killed, wiped, started again
    proxy       a line between a process and a server that delays, stalls, resets, or lets one direction through
    hosts       network namespaces, where we are root: partitions of whole hosts
    users       users: schedules, submits, cancels over HTTP; what was acknowledged is an obligation

    serve       the product's own processes with strings attached (`strings`: they stop or die before or after a write,
                their clocks are wrong, their stream is late, their loop hangs) or with a bug (`mutants`)
    handlers    what the processors run: each run leaves lines in a file that the scheduler has no hand in

    evidence    that file, read; every version that MongoDB committed, in its own order; how long nobody decided
                anything; what the audit of the database finds: none of it is the application's account of itself
    report      what the rows showed, for people and for programs

``python -m tests.chaos --list`` says what there is.
"""
