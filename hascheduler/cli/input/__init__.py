"""User input as parts of requests: files, option values, an editor's text and answers to questions.

A mistake is an `InvalidInput` that names the option, or the file, the document and the field.
"""
