"""Many agents at work for one: groups of children, their queue, and what starts them (rule 11)."""
