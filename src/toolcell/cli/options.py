"""Owns the options that commands share.

Above: every command. Below: `cyclopts`, `config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from toolcell.config.load import load_config
from toolcell.config.tree import Config


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Shared:
    """Options of every command.

    Attributes:
        config: The config file; default `$TOOLCELL_CONFIG`, else `~/.toolcell/toolcell.json`.
        json: Print one JSON document.
    """

    config: Annotated[Path | None, Parameter(name="--config")] = None
    json: Annotated[bool, Parameter(name="--json", negative="")] = False

    def load(self) -> Config:
        """Return the config tree.

        Raises:
            ConfigError: the file is missing, unreadable or wrong.
        """
        return load_config(self.config)


SHARED = Shared()
