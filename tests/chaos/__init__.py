"""Real processes on real servers in real trouble, held to the same promises as the simulations (`tests.checkers`).

::

    rows        what goes wrong, one function a row; `catalogue` names them all
    story       one row told: start, load, trouble, peace, judgement
    cluster     replicas and processors: start, kill, stop, wake, ask who leads
    servers     mongod, alone or three, and RabbitMQ, each to be stopped, killed, wiped, started again
    proxy       a line between a process and a server that delays, stalls, resets, or lets one direction through
    hosts       network namespaces, where we are root: partitions of whole hosts
    load        users: schedules, submits, cancels over HTTP; what was acknowledged is an obligation

    serve       the product's own processes with strings attached:
      failpoints    they stop or die before or after a write
      skewed_clock  their clock is wrong
      faketime      so is every clock in their process
      slow_stream   what happened reaches them late
      hanging_loop  they renew their lease and decide nothing
      mutants       they have a bug, which the suite must notice
    handlers    what the processors run: each run leaves lines in a file that the scheduler has no hand in

    effects     that file, read           ┐ the evidence: none of it is the
    oplog       every version that MongoDB committed, in its own order      ┘ application's account of itself
    journal     how long nobody decided anything, from the same
    audited     what the audit of the live database finds when all is over
    report      what the rows showed, for people and for programs

``python -m tests.chaos --list`` says what there is.
"""
