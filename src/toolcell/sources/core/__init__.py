"""The tools toolcell brings: files and a shell. Above: `app`. Below: `plugin_sdk`, `tools`."""
