"""How MongoDB and RabbitMQ become ready for a deployment: a replica set, users with least rights, and their secrets.

::

    hascheduler secrets ──► folders, each a Kubernetes Secret             hascheduler bootstrap mongodb
      (once, by a person)     hascheduler-mongodb    keyfile, passwords ──►  replica set ─► roles ─► users
                              hascheduler-rabbitmq   definitions.json ────►  the broker reads it by itself at its start
                              hascheduler-scheduler  URIs, admin token ──►  serve
                              hascheduler-processor  URIs ───────────────►  processor
                            hascheduler[-mongodb|-rabbitmq]-tls  certificates, signed by the folder `authority`

What must hold:

* whoever runs it again, or two at once, changes nothing that is as it should be;
* a replica set is made only where each of its members has answered that it belongs to none: a member that is away may
  hold the data of a set that exists, and another beside it would be a second truth;
* nothing is ever taken away: no member, no user, no data. That is for people;
* no text of an error or a log line holds a password or a key.
"""
