"""What guest code sees, in parts: each a script, its data and how its requests are answered."""

from toolcell.codemode.extensions.api import DeclarationShelf, api_extension
from toolcell.codemode.extensions.catalog import catalog_extension
from toolcell.codemode.extensions.contract import GuestExtension
from toolcell.codemode.extensions.mcp import mcp_extension
from toolcell.codemode.extensions.output import output_extension
from toolcell.codemode.extensions.results import results_extension
from toolcell.codemode.extensions.timers import (
    base64_extension,
    encoding_extension,
    timers_extension,
)
from toolcell.codemode.extensions.tools import tools_extension
from toolcell.config.code_mode import CodeModeOptions

__all__ = ["DeclarationShelf", "GuestExtension", "guest_api"]


def guest_api(
    options: CodeModeOptions,
    declarations: DeclarationShelf,
    others: tuple[GuestExtension, ...] = (),
    *,
    with_files: bool = False,
) -> tuple[GuestExtension, ...]:
    """Return the extensions of the guest API in use, in the order they are installed.

    Args:
        options: Which API, and its limits.
        declarations: Where the declaration files of the views are kept.
        others: Extensions that stand beside them; theirs are declared too.
        with_files: Whether the image carries them: for programs that mention `API`.
    """
    catalog = options.guest_api == "catalog"
    tools = tools_extension(
        default_limit=options.search_default_limit, max_limit=options.max_search_limit
    )
    shared = (
        output_extension(yield_value=catalog),
        timers_extension(),
        encoding_extension(),
        base64_extension(),
        mcp_extension(),
        api_extension(declarations, others, with_files=with_files),
    )
    return (*shared, catalog_extension(), results_extension()) if catalog else (*shared, tools)
