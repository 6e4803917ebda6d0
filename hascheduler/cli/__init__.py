"""The command line, by what the user does.

::

    app, commands, lazy_groups   the commands: one table says which module carries which
    schedules/                   hascheduler schedule …
    jobs/                        job …, why, events
    resources/                   definition …, lane …, tenant …, token …, and apply, which writes them from files
    cluster, audit_log           cluster …, audit-log
    simulate/                    simulate, record
    run/                         serve, processor, dev, demo
    setup/                       migrate, check, bootstrap …

    input/                       files, option values, editors and questions → requests
    output/                      answers → tables, JSON and log lines, safe for a terminal
    replica, credentials         the SDK, asked for one command
    options, setting_options     options that commands share; each setting as an option
    completion                   what the shell offers

A command reads its input, asks a replica over HTTP and shows the answer. Only the commands of ``run`` and ``setup``
work on servers themselves. The exit status is 2 for the caller's fault, 1 for the world's (`hascheduler.__main__`).

A module is imported when its command runs (`hascheduler.cli.commands`), and a command imports what is heavy only where
it needs it, so that ``--help`` and completion answer at once.
"""
