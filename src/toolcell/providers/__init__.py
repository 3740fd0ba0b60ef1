"""Model wires: each vendor's shape behind one small contract."""
