"""The pages that are generated from the code are as the code has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_subagent.acp.vocabulary import Category, Reason, Stage, StopReason
from acp_subagent.seam.result import SubagentStopReason
from tests.acp.generated_pages import BLOCKS, DOCS, PAGES, blocks_in, code, meanings, regenerated


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_as_the_code_generates_it(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == regenerated(text), "run: python -m tests.acp.generated_pages"


def test_every_generated_part_stands_on_a_page() -> None:
    names = [name for page in PAGES for name in blocks_in(page.read_text(encoding="utf-8"))]
    assert sorted(names) == sorted(BLOCKS)


@pytest.mark.parametrize("words", [Stage, Category, Reason, SubagentStopReason, StopReason])
def test_every_word_of_a_failure_has_its_line_of_documentation(words: type[Stage]) -> None:
    assert set(meanings(words)) == set(words)


@pytest.mark.parametrize("words", [Stage, Category, Reason, SubagentStopReason, StopReason])
def test_every_word_of_a_failure_stands_on_the_page(words: type[Stage]) -> None:
    page = (DOCS / "diagnostics.md").read_text(encoding="utf-8")
    assert [word for word in words if code(word) not in page] == []
