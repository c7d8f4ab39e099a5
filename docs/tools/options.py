"""Which options has a source's configuration file? Read from the JSON schema of the models that
check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assets.config_file import attributes_json_schema
from docs.tools.debezium import COUNTERPARTS
from docs.tools.markdown import code, from_rst, table

Schema = Mapping[str, Any]
_BOUNDS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "minItems": "at least {}",
    "pattern": "matching `{}`",
}


@dataclass(frozen=True, slots=True)
class Option:
    """One key of the file. ``path`` is dotted (``tables[].name``); a variant stands in brackets
    (``landing(s3).bucket``)."""

    path: str
    type: str
    default: str
    meaning: str

    @property
    def section(self) -> str:
        """The top-level key that it stands under, itself for a key that has none below it."""
        return self.path.split(".")[0].removesuffix("[]").split("(")[0]


def options() -> list[Option]:
    """Every key that holds a value, in the order of the models."""
    schema = attributes_json_schema()
    return list(_options(schema, schema.get("$defs", {}), ""))


def sections() -> dict[str, str]:
    """Top-level keys and what they are about."""
    schema = attributes_json_schema()
    found = {}
    for name, field in schema["properties"].items():
        models = [model for _, model in _models(field, schema.get("$defs", {}))]
        said = field.get("description") or " Or: ".join(model["description"] for model in models)
        found[name] = from_rst(said)
    return found


def markdown() -> str:
    """The reference: one table per top-level key."""
    every, lines = options(), []
    plain = [option for option in every if option.path == option.section]
    lines += ["### Top level", "", _table(plain), ""]
    for name, about in sections().items():
        below = [option for option in every if option.section == name and option.path != name]
        if below:
            lines += [f"### `{name}`", "", about, "", _table(below), ""]
    return "\n".join(lines)


def _table(chosen: list[Option]) -> str:
    return table(
        ("option", "type", "default", "meaning", "Debezium"),
        (
            (
                code(option.path),
                option.type,
                option.default,
                option.meaning,
                ", ".join(map(code, COUNTERPARTS.get(option.path, ()))) or "–",
            )
            for option in chosen
        ),
    )


def _options(schema: Schema, models: Schema, prefix: str, *, within: str = "") -> Iterator[Option]:
    """``within`` is the nearest section above that may be left out whole."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        below = list(_models(field, models))
        is_optional = bool(below) and name not in required and field.get("default") is None
        for suffix, model in below:
            path = f"{prefix}{name}{suffix}"
            yield from _options(model, models, f"{path}.", within=path if is_optional else within)
        if not below:
            yield Option(
                path=prefix + name,
                type=_type(field),
                default=_default(field, is_required=name in required, within=within),
                meaning=from_rst(_meaning(field, schema)),
            )


def _meaning(field: Schema, model: Schema) -> str:
    """The field's docstring; a field that only names its model's kind speaks for the model."""
    said = str(field.get("description", ""))
    return said or (str(model.get("description", "")) if "const" in field else "")


def _models(field: Schema, models: Schema) -> Iterator[tuple[str, Schema]]:
    """Models below a field, each with what is written behind the field's name: the kind, but for
    the one that the field has by default."""
    if field.get("type") == "array":
        for suffix, model in _models(field["items"], models):
            yield f"[]{suffix}", model
        return
    variants = field.get("oneOf") or field.get("anyOf") or field.get("allOf") or [field]
    named = [models[variant["$ref"].rsplit("/", 1)[1]] for variant in variants if "$ref" in variant]
    default = field.get("default")
    usual = default.get("type") if isinstance(default, dict) else None
    for model in named:
        kind = model.get("properties", {}).get("type", {}).get("const")
        yield (f"({kind})" if kind not in (None, usual) and len(named) > 1 else ""), model


def _type(field: Schema) -> str:
    variants = field.get("anyOf") or field.get("oneOf")
    if variants:
        kinds = [_type(variant) for variant in variants if variant.get("type") != "null"]
        said = " or ".join(dict.fromkeys(kinds))
    elif "const" in field:
        said = code(str(field["const"]))
    elif "enum" in field:
        said = " or ".join(code(str(value)) for value in field["enum"])
    elif field.get("type") == "array":
        said = f"list of {_type(field['items'])}"
    elif field.get("type") == "object":
        inside = field.get("additionalProperties")
        said = f"map of text to {_type(inside)}" if isinstance(inside, dict) else "map"
    else:
        said = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false"}.get(
            str(field.get("type")), "any"
        )  # fmt: skip
    bounds = [text.format(field[name]) for name, text in _BOUNDS.items() if name in field]
    return f"{said}, {', '.join(bounds)}" if bounds else said


def _default(field: Schema, *, is_required: bool, within: str) -> str:
    if is_required:
        return f"required where {code(within)} is given" if within else "**required**"
    default = field.get("default")
    if default is None or default in ([], {}):
        return "none"
    return code(str(default).lower() if isinstance(default, bool) else str(default))
