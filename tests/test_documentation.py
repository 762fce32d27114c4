"""What the documentation says of settings, columns and files is what there is."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from pipeline.telemetry.columns import COLUMNS
from pipeline.telemetry.latency_log import LatencyLog
from web.reference import DOCS, TABLES, with_table

ROOT = DOCS.parent
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_made_from_the_code(name: str) -> None:
    page = (DOCS / name).read_text("utf-8")
    assert page == with_table(page, TABLES[name]()), "make docs brings it up to date"


def test_a_page_without_a_place_for_its_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no place"):
        with_table("# A page\n", "| a |\n")


def test_every_column_of_the_latency_log_is_described(tmp_path: Path) -> None:
    LatencyLog(tmp_path / "latency.db").close()
    with sqlite3.connect(tmp_path / "latency.db") as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(turns)")]
    connection.close()
    assert sorted(COLUMNS) == sorted(columns)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_within_the_documentation_lead_somewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(#[^)\s]*)?\)", text):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text("utf-8"), re.MULTILINE)
            anchors = {"#" + re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, f"{page.name} links to {target}{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_the_documentation_names_are_there(page: Path) -> None:
    named = re.findall(
        r"`((?:asr|llm|tts|pipeline|web|tests|bench|fixtures|docs)/[\w./-]*)`", page.read_text("utf-8")
    )
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 130
