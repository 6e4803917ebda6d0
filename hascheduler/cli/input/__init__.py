"""What the user gives, as parts of requests: files, the values of options, an editor's text, answers to questions.

::

    values           numbers, rates, resources, payloads
    documents        YAML read as strictly as JSON
    manifests        the documents of `hascheduler apply`
    normal_forms     one form of a resource, so that two can be compared
    prompts          questions, confirmed deletion, ``$EDITOR``

A mistake is an `InvalidInput` that names the option, or the file, the document and the field.
"""
