"""GitHub's published OpenAPI, cut to our calls: checks each exchange, and makes the least answer allowed."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from openapi_core import OpenAPI
from openapi_core.exceptions import OpenAPIError
from openapi_core.testing import MockRequest, MockResponse

CUT = Path(__file__).parent / "openapi" / "github.json"
_HOST = "https://api.github.com"
_TEXTS = {"uri": "https://example.invalid/", "date-time": "2026-01-01T00:00:00Z"}
_PLAIN: dict[str, Any] = {"integer": 1, "number": 1.0, "boolean": False, "array": [], "string": "text"}


class Schema:
    """GitHub's word on what is asked and answered."""

    def __init__(self) -> None:
        self.raw = json.loads(CUT.read_text())
        self.api = OpenAPI.from_dict(self.raw)

    def violations(
        self, verb: str, path: str, query: str, body: bytes, status: int, headers: dict, answer: bytes
    ) -> str:
        """What one exchange breaks, request first; "" where nothing."""
        request = MockRequest(
            _HOST, verb.lower(), path, args=dict(parse_qsl(query)), data=body or None, content_type="application/json"
        )
        try:
            self.api.validate_request(request)
        except OpenAPIError as error:
            return f"request {verb} {path}?{urlencode(parse_qsl(query))}: {error}: {error.__cause__}"
        response = MockResponse(answer, status_code=status, headers=dict(headers), content_type="application/json")
        try:
            self.api.validate_response(request, response)
        except OpenAPIError as error:
            return f"answer {status} to {verb} {path}: {error}: {error.__cause__}"
        return ""

    def least(self, name: str, **given: Any) -> Any:
        """The smallest object of a named schema, with some values given."""
        return self._least(self.raw["components"]["schemas"][name]) | given

    def _least(self, node: dict[str, Any]) -> Any:
        if "$ref" in node:
            return self._least(self.raw["components"]["schemas"][node["$ref"].rpartition("/")[2]])
        if node.get("nullable"):
            return None
        if "enum" in node:
            return node["enum"][0]
        for key in ("anyOf", "oneOf"):
            if key in node:
                return self._least(node[key][0])
        if "allOf" in node:
            return {name: value for part in node["allOf"] for name, value in self._least(part).items()}
        kind = node.get("type", "object")
        if kind != "object":
            return _TEXTS.get(node.get("format", ""), _PLAIN[kind])
        properties = node.get("properties", {})
        return {name: self._least(properties[name]) for name in node.get("required", []) if name in properties}
