"""The door of plugin authors."""
