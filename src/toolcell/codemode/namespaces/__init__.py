"""Internal namespaces: a domain API of a plugin, for guest code (rule 6). Not part of the SDK."""
