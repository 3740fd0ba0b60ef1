"""Virtual `.d.ts` files: what `API.list` and `API.read` show of the visible tools (rule 5.2)."""
