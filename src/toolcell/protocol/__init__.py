"""Nouns that rooms exchange: scopes, messages, events, hooks, approvals."""
