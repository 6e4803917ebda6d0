"""What would happen: the real dispatch core on virtual time, and figures and pictures of its decisions.

::

    text ──► parsing ──► Scenario ──► run: Dispatcher on virtual time ──► RunOutcome ──┬─► report   figures
             (`reading`)                                                               └─► plot     a picture

A recording of a live leader goes two ways: ``replay`` has the core decide the same again, ``from_recording`` makes a
scenario of it, to be run under another policy.

A scenario is one file, YAML or JSON, in seconds: a policy, definitions, lanes, tenants, processors, and jobs with the
time that each takes. No server is needed, and the same file gives the same outcome on every machine.

At each instant up to and including ``until``: jobs arrive one by one in the order of the file, jobs end in the order in
which they were dispatched, processors join, drain and leave, and then jobs are dispatched until nothing is admissible.
The core sees at once what a leader would read back from MongoDB.
"""
