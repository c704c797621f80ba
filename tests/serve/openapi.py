# SPDX-License-Identifier: Apache-2.0
"""Whether answers are as the OpenAPI document says: the part of JSON Schema that it uses."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Document:
    """The document, and which of its operations were answered."""

    def __init__(self, text):
        self.text = text
        self.answered = set()

    def schema(self, schema):
        while isinstance(schema, dict) and "$ref" in schema:
            found = self.text
            for name in schema["$ref"].split("/")[1:]:
                found = found[name]
            schema = found
        return schema

    def check(self, value, schema, where):
        schema = self.schema(schema)
        if isinstance(schema, bool):
            assert schema, f"{where}: is not allowed"
            return
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        assert not kinds or any(is_type(value, kind) for kind in kinds), f"{where}: {value!r} is not {kinds}"
        assert value in schema.get("enum", [value]), f"{where}: {value!r}"
        assert value == schema.get("const", value), f"{where}: {value!r}"
        if isinstance(value, str) and "pattern" in schema:
            assert re.search(schema["pattern"], value), f"{where}: {value!r}"
        if is_type(value, "number"):
            assert value >= schema.get("minimum", value), f"{where}: {value}"
        for name in ("anyOf", "oneOf"):
            if name in schema:
                fitting = [one for one in schema[name] if self.fits(value, one)]
                assert fitting and (name == "anyOf" or len(fitting) == 1), f"{where}: {value!r}"
        if isinstance(value, dict):
            self.check_object(value, schema, where)
        if isinstance(value, list):
            first = schema.get("prefixItems", [])
            for place, item in enumerate(value):
                kind = first[place] if place < len(first) else schema.get("items", True)
                self.check(item, kind, f"{where}[{place}]")

    def check_object(self, value, schema, where):
        for name in schema.get("required", []):
            assert name in value, f"{where}: {name} is missing"
        known = schema.get("properties", {})
        for name, member in value.items():
            self.check(member, known.get(name, schema.get("additionalProperties", True)), f"{where}.{name}")

    def fits(self, value, schema):
        try:
            self.check(value, schema, "")
        except AssertionError:
            return False
        return True

    def operation(self, method, path):
        for template, methods in self.text["paths"].items():
            if re.fullmatch(re.sub(r"{[a-z]+}", "[^/]+", template), path):
                return methods.get(method.lower())
        return None

    def check_answer(self, method, path, status, kind, values):
        """values: what the body has, of NDJSON one for each line."""
        operation = self.operation(method, path.split("?")[0])
        if operation is None:
            assert status in (403, 404, 405, 414, 421), f"{path} is not in the document"
            return
        self.answered.add(operation["operationId"])
        responses = operation["responses"]
        contents = [self.schema(responses[name])["content"]
                    for name in (str(status), "default") if name in responses]
        fitting = [content[kind]["schema"] for content in contents if kind in content]
        assert fitting, f"{method} {path}: {status} {kind} is not in the document"
        for value in values:
            self.check(value, fitting[0], f"{method} {path}")
