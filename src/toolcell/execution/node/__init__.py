"""Node in a supervisor process: quick, trusted execution; not a security boundary (rule 9.2)."""
