"""The tables of the documentation that are made from the code: settings, and columns of the latency log.

`python -m web.reference` writes them into `docs/`; a test holds them to the code.
"""

from __future__ import annotations

from pathlib import Path

from pydantic.fields import FieldInfo

from pipeline.config import ENVIRONMENT, Settings
from pipeline.telemetry.columns import COLUMNS

DOCS = Path(__file__).parents[1] / "docs"
_BEGIN = "<!-- made by python -m web.reference: begin -->\n"
_END = "<!-- made by python -m web.reference: end -->\n"


def settings_table() -> str:
    """Every setting with its default and what it accepts, as Markdown."""
    rows = [
        f"| `{name}` | {_default(field)} | {_cell(field.description or '')} |"
        for name, field in Settings.model_fields.items()
    ]
    return "\n".join(["| setting | default | what it is |", "|---|---|---|", *rows]) + "\n"


def columns_table() -> str:
    """Every column of the latency log with its meaning, as Markdown."""
    rows = [f"| `{name}` | {_cell(meaning)} |" for name, meaning in COLUMNS.items()]
    return "\n".join(["| column | meaning |", "|---|---|", *rows]) + "\n"


TABLES = {"settings.md": settings_table, "latency-log.md": columns_table}
"""The page of `docs/` that each table stands in."""


def with_table(page: str, table: str) -> str:
    """The page's text with the table between its marks. Raises ValueError where it has none."""
    before, begin, rest = page.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError("the page has no place for the table")
    return f"{before}{begin}\n{table}\n{end}{after}"


def main() -> None:
    """Write every table into its page."""
    for name, table in TABLES.items():
        page = DOCS / name
        page.write_text(with_table(page.read_text("utf-8"), table()), "utf-8")


def _default(field: FieldInfo) -> str:
    """A default that depends on the machine is described by its setting."""
    if field.default_factory is not None:
        return "in the user's data folder"
    if field.default in (None, "", ()):
        return "none"
    value = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace(ENVIRONMENT, f"`{ENVIRONMENT}`")


if __name__ == "__main__":
    main()
