"""The environment in a Kubernetes cluster. Everything goes through ``kubectl``, with the rights of the user's own.

::

    kubectl        runs it, with a limit on every call
    preflight      what must be there and allowed: one clear line for what is missing
    api_access     the token for the API and the authority to trust, from the Secrets that the Deployment mounts
    pods           the pods, ports forwarded to their API, and their logs, followed into files
    kills          the ways to end a pod, and how long a takeover took
    demo_objects   the demo's schedules and jobs, by the API
    environment    the demo's environment, put together from those

The objects are found by their names and labels: Deployments ``scheduler`` and ``processor``, whose containers have the
same names.
"""
