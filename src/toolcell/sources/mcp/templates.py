"""Owns resource templates: one as a server lists it, and the uri that its variables make of it.

Above: the connection's calls. Below: the MCP SDK's reading of RFC 6570, which is bounded: 8,192
characters and 256 variables. Refuses to know: requests.
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

from toolcell.sources.mcp.text import clean, one_line

_LIMITS: Final[Mapping[str, int]] = {"name": 512, "title": 512, "mimeType": 200}
_MAX_DESCRIPTION: Final = 16_384
MAX_READ: Final = 1_024
"""Characters of a template whose variables are listed: reading takes up to 0.1 ms for each 100."""


class TemplateError(ValueError):
    """A template, or variables, that make no uri; the text says what to change."""


def listed_template(raw: Any) -> dict[str, Any] | None:
    """Return one listed template, its texts bounded, with the names to fill in; None for a bad one.

    `variables` is left out for a template that is long or that the SDK cannot read: it may still be
    filled in by hand. One with control or direction characters is not shown at all.
    """
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
    if len(template) > MAX_READ:
        return out
    try:
        out["variables"] = list(dict.fromkeys(UriTemplate.parse(template).variable_names))
    except InvalidUriTemplate:
        return out
    return out


def filled_in(template: str, variables: Any) -> str:
    """Return the uri of a template.

    Args:
        template: As it is listed.
        variables: A text, or a list of texts, for each name; those of a query may be left out.

    Raises:
        TemplateError: it cannot be read, a variable is missing, unknown or no text.
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


def _listed(names: Any) -> str:
    return ", ".join(repr(name)[:80] for name in list(names)[:8]) or "none"
