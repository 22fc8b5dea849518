"""Names for choices of words in the OpenAPI document, so that each is one type in a generated client.

Generators invent a name for every place where words are listed, and three names where the field may be null as well.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Words = tuple[str, ...]
_VAGUE = frozenset({"type", "name", "code", "kind", "error", "event", "result", "clear", "broker"})
"""Fields whose word says too little without the schema that has them."""


class _Place(NamedTuple):
    field: str
    owner: str
    """The schema that has the field."""


def name_choices(schemas: dict[str, Any]) -> None:
    """Make every choice of words in these schemas one of them, and refer to it."""
    places: dict[Words, list[_Place]] = {}
    for owner, schema in sorted(schemas.items()):
        for words, field in _choices(schema, owner):
            places.setdefault(words, []).append(_Place(field, owner))
    names: dict[Words, str] = {}
    for words, found in places.items():
        names[words] = _name(found, {*schemas, *names.values()})
    for owner, schema in schemas.items():
        schemas[owner] = _referring(schema, names)
    schemas.update({name: {"type": "string", "enum": list(words)} for words, name in names.items()})


def _choices(node: Any, field: str) -> Iterator[tuple[Words, str]]:
    if isinstance(node, list):
        for item in node:
            yield from _choices(item, field)
    elif isinstance(node, dict):
        if words := _words(node):
            yield words, field
        for name, inner in node.items():
            for each, value in inner.items() if name == "properties" else ((_below(name, field), inner),):
                yield from _choices(value, each)


def _below(name: str, field: str) -> str:
    """The items of `scopes` are each a scope."""
    return field.removesuffix("s") if name == "items" else field


def _words(node: Mapping[str, Any]) -> Words:
    """Nothing where no words are listed, or a single one that is always there: it marks a kind of object."""
    words = tuple(word for word in node.get("enum", ()) if word is not None)
    is_choice = len(words) > 1 or None in node.get("enum", ())
    return words if is_choice and all(isinstance(word, str) for word in words) else ()


def _name(places: list[_Place], taken: set[str]) -> str:
    """By the shortest words for it; with its owner in front if that is vague or taken."""
    field, owner = min(places, key=lambda place: (len(place.field), len(place.owner), place))
    name = "".join(part.capitalize() for part in field.split("_"))
    name = owner + name if field in _VAGUE or name in taken else name
    if name in taken:
        raise ValueError(f"two schemas would be called {name}")
    return name


def _referring(node: Any, names: Mapping[Words, str]) -> Any:
    if isinstance(node, list):
        return [_referring(item, names) for item in node]
    if not isinstance(node, dict):
        return node
    if not (words := _words(node)):
        return {key: _referring(value, names) for key, value in node.items()}
    reference = {"$ref": f"#/components/schemas/{names[words]}"}
    besides = {key: value for key, value in node.items() if key not in ("type", "enum")}
    return besides | ({"oneOf": [reference, {"type": "null"}]} if None in node["enum"] else reference)
