"""A cluster on a laptop, made with kind, and hascheduler in it. ``scripts/kind-up`` and ``scripts/kind-down`` run this.

::

    cluster.yaml  its nodes, and the port that leads in
    tools         the programs that this takes, and how they are run
    images        what is built here and what comes from elsewhere, onto the nodes
    rollout       waits for the pods, and says what to look at when they do not come
    up            all of it, one step after another; doing it again does only what is left

Everything goes to the context ``kind-hascheduler``, whatever the current one is.
"""

CLUSTER = "hascheduler"
NAMESPACE = "hascheduler"
CONTEXT = f"kind-{CLUSTER}"
URL = "http://127.0.0.1:8080"
