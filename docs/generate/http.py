"""Every route with its parameters, bodies and answers, from OpenAPI; and every body with its fields."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from docs.generate.markdown import cell, code, head, prose, table
from hascheduler.api.app import create_routes, description_of
from hascheduler.model.token import POWERS, Role

_INTRO = """\
`GET /openapi.json` of any replica is the contract; this page shows it for readers, and `/docs` of a replica lets you
try it. Durations are texts such as `"90s"` or numbers of seconds, instants are RFC 3339 with an offset. Unknown fields
and query parameters are refused.

**Roles.** Where tokens are demanded, each request carries `Authorization: Bearer …`. *(all tenants)* needs a token for
all tenants (`*`).

**Errors.** Every route may also answer {general}. The types are in
[Problem types](problems.md), the fields of bodies in [Bodies](http-bodies.md).
"""
_GENERAL = ("400", "401", "403", "408", "413", "415", "421", "422", "429", "500", "503")
_TITLES = {
    "jobs": "Jobs",
    "schedules": "Schedules",
    "definitions": "Definitions",
    "lanes": "Lanes",
    "calendars": "Calendars",
    "tenants": "Tenants",
    "cluster": "Cluster",
    "events": "Events",
    "work": "Work",
    "access": "Tokens and the audit log",
    "health": "Health and metrics",
}
_METHODS = ("get", "post", "put", "patch", "delete")
Schema = Mapping[str, Any]


def page() -> str:
    app = _application()
    roles = {route.name: _demand(route) for route in _routes(app.routes)}
    by_tag: dict[str, list[str]] = {tag: [] for tag in _TITLES}
    for path, methods in app.openapi()["paths"].items():
        for method in _METHODS:
            if method in methods:
                operation = methods[method]
                by_tag[operation["tags"][0]].append(
                    _operation(method, path, operation, roles.get(operation["operationId"], ""))
                )
    general = ", ".join(_GENERAL[:-1]) + f" or {_GENERAL[-1]}"
    parts = [head("HTTP", "the API's OpenAPI description", _INTRO.format(general=general))]
    for tag, operations in by_tag.items():
        parts += [f"## {_TITLES[tag]}\n", *operations]
    return "\n".join(parts)


def bodies_page() -> str:
    schemas = _application().openapi()["components"]["schemas"]
    parts = [
        head("HTTP bodies", "the API's OpenAPI description", "The fields of what [HTTP](http.md) takes and gives.\n")
    ]
    for name in sorted(schemas):
        parts += [f"## {name}\n", _body(schemas[name])]
    return "\n".join(parts)


def description() -> str:
    """The OpenAPI document, as the package has it and replicas serve it."""
    return description_of(_application())


@cache
def _application() -> FastAPI:
    return create_routes()


def _routes(routes: Any) -> Iterator[APIRoute]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from _routes(route.original_router.routes)


def _demand(route: APIRoute) -> str:
    """The roles that may ask for the route; "" where nothing is demanded."""
    pending = [route.dependant]
    while pending:
        dependant = pending.pop()
        demand: Any = dependant.call
        if hasattr(demand, "power") and hasattr(demand, "of_all"):
            roles = [role.value for role in Role if demand.power is None or demand.power in POWERS[role]]
            return ", ".join(code(role) for role in roles) + (" *(all tenants)*" if demand.of_all else "")
        pending += dependant.dependencies
    return ""


def _operation(method: str, path: str, operation: Schema, demand: str) -> str:
    parts = [f"### {method.upper()} {path}\n", prose(operation.get("description", operation["summary"])) + "\n"]
    if demand:
        parts.append(f"Roles: {demand}.\n")
    parameters = operation.get("parameters", ())
    if parameters:
        rows = ((code(each["name"]), each["in"], _type(each["schema"]), _told(each)) for each in parameters)
        parts.append(table(("parameter", "in", "type", "what it is"), rows))
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"Body ({code(media_type)}): {_type(content.get('schema', {}))}\n")
    answers = (
        (code(status), _answer(answer), _when(answer["description"]))
        for status, answer in sorted(operation["responses"].items())
        if not status.endswith("XX")
    )
    parts.append(table(("status", "body", "when"), answers))
    return "\n".join(parts)


def _told(parameter: Schema) -> str:
    text = parameter.get("description", "")
    default = parameter["schema"].get("default")
    return f"{text} [default {code(str(default))}]" if default not in (None, "", []) else text


def _answer(answer: Schema) -> str:
    schemas = [each.get("schema", {}) for each in answer.get("content", {}).values()]
    return _type(schemas[0]) if schemas else ""


def _when(description: str) -> str:
    return "Done" if description == "Successful Response" else description


def _body(schema: Schema) -> str:
    lines = [prose(schema["description"]) + "\n"] if schema.get("description") else []
    if "properties" in schema:
        required = schema.get("required", ())
        rows = (
            (code(name), _type(field), "yes" if name in required else "", _field(field))
            for name, field in schema["properties"].items()
        )
        lines.append(table(("field", "type", "required", "what it is"), rows))
    elif "enum" in schema:
        lines.append("One of " + ", ".join(code(str(value)) for value in schema["enum"]) + ".\n")
    else:
        lines.append(_type(schema) + "\n")
    return "\n".join(lines)


def _field(field: Schema) -> str:
    text = str(field.get("description", ""))
    [form, *others] = [each for each in field.get("anyOf", ()) if each != {"type": "null"}] or [field]
    bounds = [
        f"{word} {form[key]:.10g}"
        for key, word in (("minimum", "at least"), ("maximum", "at most"), ("maxLength", "length at most"))
        if key in form and not others
    ]
    default = field.get("default")
    if default not in (None, "", [], {}):
        bounds.append(f"default {code(str(default))}")
    return f"{text} [{', '.join(bounds)}]" if bounds else text


def _type(schema: Schema) -> str:
    """A schema in a few words, linked where it is a body with a name."""
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return f"[{name}](http-bodies.md#{name.lower()})"
        case {"anyOf": list(members)} | {"oneOf": list(members)}:
            return " or ".join(dict.fromkeys(_type(member) for member in members))
        case {"enum": list(values)}:
            return ", ".join(code(str(value)) for value in values)
        case {"const": value}:
            return code(str(value))
        case {"type": "array", "items": dict(items)}:
            return f"list of {_type(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"object of {_type(values)}"
        case {"type": str(name)}:
            return cell(name)
        case _:
            return "any"
