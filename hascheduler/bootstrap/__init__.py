"""How MongoDB and RabbitMQ become ready for a deployment: a replica set, users with least rights, and their secrets.

::

    hascheduler secrets ──► folders, each a Kubernetes Secret             hascheduler bootstrap mongodb
      (once, by an operator)  hascheduler-mongodb    keyfile, passwords ──►  replica set ─► roles ─► users
                              hascheduler-rabbitmq   definitions.json ────►  the broker reads it at its start
                              hascheduler-scheduler  URIs, admin token ──►  serve
                              hascheduler-processor  URIs ───────────────►  processor
                            hascheduler[-mongodb|-rabbitmq]-tls  certificates, signed by the folder `authority`

    mongodb        the loop: ask the members, do the next action, ask again
    replica_set    the next action, decided from what the members answer
    member         one member, asked directly
    users          MongoDB's users, roles and rights
    inputs         addresses, key and passwords, as the operator gives them
    secret_values, secret_files, certificates, broker_definitions      what `hascheduler secrets` writes

What must hold:

* repeated or concurrent runs change nothing that is as it should be;
* a replica set is made only where each of its members has answered that it belongs to none: a member that is away may
  hold the data of a set that exists, and another beside it would be a second truth;
* nothing is ever taken away: no member, no user, no data. That is for people;
* no text of an error or a log line holds a password or a key.
"""
