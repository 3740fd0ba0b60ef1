"""The examples of docs/schemas.md run."""

from __future__ import annotations

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "schemas.md"


def test_the_examples_in_the_document_run(capsys: object) -> None:
    """Rule 4.3, rule 5.2: what is printed is what the document shows."""
    text = DOCUMENT.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(example, names)  # noqa: S102 - our own document
    (declaration,) = re.findall(r"```typescript\n(.*?)```", text, re.DOTALL)
    printed = capsys.readouterr().out  # type: ignore[attr-defined]
    assert printed.strip() == declaration.strip()
