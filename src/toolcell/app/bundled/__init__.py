"""Plugins that come with toolcell; `plugins.bundled` in the config turns them on."""
