"""Owns resource templates: one as a server lists it, and the uri that its variables make of it.

Above: the connection's calls. Below: `sources.mcp.paging`; the MCP SDK's reading of RFC 6570, which
is bounded: 8,192 characters and 256 variables. Refuses to know: requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.uri_template import (
    DEFAULT_MAX_TEMPLATE_LENGTH,
    DEFAULT_MAX_URI_LENGTH,
    InvalidUriTemplate,
    UriTemplate,
)

from toolcell.sources.mcp.paging import Items
from toolcell.sources.mcp.text import clean, one_line

_LIMITS: Final[Mapping[str, int]] = {"name": 512, "title": 512, "mimeType": 200}
_MAX_DESCRIPTION: Final = 16_384
MAX_READ: Final = 1_024
"""Characters of a template whose variables are listed: reading takes up to 0.1 ms for each 100."""
MAX_READ_IN_ALL: Final = 262_144
"""Characters of all the templates of one listing that are read: a quarter of a second at most."""


class TemplateError(ValueError):
    """A template, or variables, that make no uri; the text says what to change."""


class Templates(Items):
    """The templates of one listing so far, each with the names to fill in.

    `variables` is left out for a template that is long, that comes after much was read, or that
    the SDK cannot read: it may still be filled in by hand.
    """

    def __init__(self, key: str) -> None:
        super().__init__(key, self._one)
        self._left = MAX_READ_IN_ALL
        self._unread = 0

    def warnings(self) -> list[str]:
        """Say what was left out, and of how many templates nobody looked for variables."""
        found = super().warnings()
        if self._unread:
            found.append(
                f"'variables' not listed for {self._unread} template(s) of more than {MAX_READ} "
                f"characters, or after {MAX_READ_IN_ALL} in all; 'resources.read' takes them"
            )
        return found

    def _one(self, raw: Any) -> dict[str, Any] | None:
        out = _shown(raw)
        if out is None:
            return None
        template = out["uriTemplate"]
        if len(template) > min(MAX_READ, self._left):
            self._unread += 1
            return out
        self._left -= len(template)
        try:
            out["variables"] = list(dict.fromkeys(UriTemplate.parse(template).variable_names))
        except InvalidUriTemplate:
            return out
        return out


def _shown(raw: Any) -> dict[str, Any] | None:
    """Return a template as it is listed; None for one with control or direction characters."""
    if not isinstance(raw, Mapping):
        return None
    template, name = raw.get("uriTemplate"), raw.get("name")
    if not isinstance(template, str) or not isinstance(name, str) or not name.strip():
        return None
    if not 0 < len(template) <= DEFAULT_MAX_TEMPLATE_LENGTH or clean(template, 1 << 20) != template:
        return None
    out: dict[str, Any] = {"uriTemplate": template}
    for key, limit in _LIMITS.items():
        if isinstance(raw.get(key), str):
            out[key] = one_line(raw[key], limit)
    if isinstance(raw.get("description"), str):
        out["description"] = clean(raw["description"], _MAX_DESCRIPTION)
    return out


def filled_in(template: str, variables: Any) -> str:
    """Return the uri of a template.

    Args:
        template: As it is listed.
        variables: A text, or a list of texts, for each name; those of a query may be left out.

    Raises:
        TemplateError: it cannot be read, a variable is missing, unknown or no text, or it is
            too long.
    """
    if not isinstance(variables, Mapping):
        raise TemplateError("'variables' must be an object of texts")
    try:
        parsed = UriTemplate.parse(template)
    except InvalidUriTemplate as error:
        msg = f"'uri' is no template that can be filled in: {one_line(str(error), 200)}"
        raise TemplateError(msg) from None
    names = dict.fromkeys(parsed.variable_names)
    if unknown := [name for name in variables if name not in names]:
        msg = f"the template has no variable {unknown[0]!r:.80}; it has {_listed(names)}"
        raise TemplateError(msg)
    optional = parsed.query_variable_names
    if missing := [name for name in names if name not in variables and name not in optional]:
        msg = f"'variables' has no value for {_listed(missing)}"
        raise TemplateError(msg)
    if (given := _length(variables)) > DEFAULT_MAX_URI_LENGTH:
        msg = f"'variables' hold {given} characters; at most {DEFAULT_MAX_URI_LENGTH} are sent"
        raise TemplateError(msg)
    try:
        uri = parsed.expand(variables)
    except TypeError:
        msg = "the values of 'variables' must be texts or lists of texts"
        raise TemplateError(msg) from None
    except UnicodeEncodeError:
        raise TemplateError("a text holds half of a surrogate pair") from None
    if len(uri) > DEFAULT_MAX_URI_LENGTH:
        msg = f"the uri has {len(uri)} characters; at most {DEFAULT_MAX_URI_LENGTH} are sent"
        raise TemplateError(msg)
    return uri


def _length(variables: Mapping[str, Any]) -> int:
    """Count characters before work is spent on them; a member of a list costs one more."""
    found = 0
    for value in variables.values():
        if isinstance(value, str):
            found += len(value)
        elif isinstance(value, list):
            found += sum(len(each) + 1 for each in value if isinstance(each, str))
    return found


def _listed(names: Any) -> str:
    return ", ".join(repr(name)[:80] for name in list(names)[:8]) or "none"
