"""The scenario reference as Markdown, made from the models, the built-ins and the rules of strict mode."""

from __future__ import annotations

from typing import Any

from fake_acp_server import builtin, models
from fake_acp_server.children import KINDS
from fake_acp_server.rules import RULES

#: Definitions that have a section of their own before the mappings.
_FIRST = ("Answer", "Step")


def markdown() -> str:
    """The whole reference."""
    schema = models.json_schema()
    definitions = schema["$defs"]
    parts = [
        "### Keys of a scenario",
        _table(schema["properties"], ("key", "value", "meaning")),
        "### Keys of an answer",
        _table(definitions["Answer"]["properties"], ("key", "value", "meaning")),
        "### Steps",
        _table(definitions["Step"]["properties"], ("step", "value", "meaning"), defaults=False),
        "### Mappings",
    ]
    for name, definition in definitions.items():
        if name not in _FIRST:
            parts.append(f"**{name}**: {definition['description']}")
            parts.append(_table(definition["properties"], ("key", "value", "meaning")))
    parts += [
        "### Kinds of children",
        _rows(("kind", "what it is"), [[f"`{kind}`", text] for kind, text in KINDS.items()]),
        "### Built-in scenarios",
        _rows(("name", "purpose"), [[f"`{name}`", purpose] for name, purpose in builtin.purposes().items()]),
        "### Rules of strict mode",
        _rows(("rule", "the client"), [[f"`{name}`", text] for name, text in RULES.items()]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(properties: dict[str, Any], heads: tuple[str, ...], defaults: bool = True) -> str:
    rows = []
    for name, schema in properties.items():
        meaning = schema.get("description", "")
        default = schema.get("default")
        if defaults and default not in (None, "", [], {}, False):
            meaning = f"{meaning}; default {_code(default)}".removeprefix("; ")
        rows.append([f"`{name}`", _form(schema), meaning])
    return _rows(heads, rows)


def _form(schema: dict[str, Any]) -> str:
    """What a value may look like, in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return ", ".join(_code(word) for word in schema["enum"])
    if "anyOf" in schema:
        forms = [_form(form) for form in schema["anyOf"] if form.get("type") != "null"]
        return " or ".join(dict.fromkeys(forms))
    if schema.get("type") == "array":
        return f"list of {_form(schema['items'])}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"mapping of {_form(values)}" if isinstance(values, dict) and values else "mapping"
    return {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}.get(
        str(schema.get("type")), "anything"
    )


def _code(value: Any) -> str:
    words = {True: "true", False: "false"}
    return f"`{words[value] if isinstance(value, bool) else value}`"


def _rows(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [list(heads), ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
