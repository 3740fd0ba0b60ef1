"""The authors' door: what a plugin imports. Above: loaders. Below: `tools`."""
