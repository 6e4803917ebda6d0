"""The building blocks of every route: bodies, field types, query parameters, revisions, responses, error handlers."""
