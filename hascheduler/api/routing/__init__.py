"""What every route is made of: bodies, field types, query parameters, revisions, answers, error handlers."""
