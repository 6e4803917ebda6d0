"""What the user gives, as parts of requests: files, the values of options, an editor's text, answers to questions.

A mistake is an `InvalidInput` that names the option, or the file, the document and the field.
"""
