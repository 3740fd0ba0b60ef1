"""What guest code sees, in parts: each a script, its data and how its requests are answered."""

from functools import cache

from toolcell.codemode.extensions.catalog import catalog_extension
from toolcell.codemode.extensions.contract import GuestExtension
from toolcell.codemode.extensions.mcp import mcp_extension
from toolcell.codemode.extensions.output import output_extension
from toolcell.codemode.extensions.timers import encoding_extension, timers_extension
from toolcell.config.code_mode import GuestApi
from toolcell.errors import ConfigError

__all__ = ["GuestExtension", "guest_api"]


@cache
def guest_api(name: GuestApi) -> tuple[GuestExtension, ...]:
    """Return the extensions of a guest API, in the order they are installed."""
    if name == "tools":
        msg = "tools.codeMode.guestApi 'tools' is not available yet; use 'catalog'"
        raise ConfigError(msg, path="tools.codeMode.guestApi")
    return (
        output_extension(yield_value=True),
        timers_extension(),
        encoding_extension(),
        mcp_extension(),
        catalog_extension(),
    )
