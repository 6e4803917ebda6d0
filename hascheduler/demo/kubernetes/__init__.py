"""The stage in a Kubernetes cluster: everything through ``kubectl``, so that it works wherever a person's own does.

::

    kubectl     runs it, with a limit on every call
    preflight   what must be there and allowed, each missing thing in one clear line
    admission   the token for the API and the authority to trust, out of the Secrets that the Deployment mounts
    pods        what there is, looked at again and again
    forwards    a way to the API of each scheduler pod, opened again as pods come and go
    outputs     the processors' logs, followed into files before the pods can take them along
    endings     the ways in which a pod is ended
    stage       the demo's stage, put together from those

The objects are found by their names and labels: Deployments ``scheduler`` and ``processor``, whose containers are named
like them.
"""
