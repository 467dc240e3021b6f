"""The page of this provider is as the code has it."""

from __future__ import annotations

import pytest

from acp_subagent import DshConfig
from acp_subagent.dsh.vocabulary import Category, Stage
from tests.acp.generated_pages import blocks_in, code, meanings, regenerated
from tests.dsh.generated_page import BLOCKS, PAGE


def test_the_page_is_as_the_code_generates_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == regenerated(text, BLOCKS), "run: python -m tests.dsh.generated_page"
    assert sorted(blocks_in(text)) == sorted(BLOCKS)


@pytest.mark.parametrize("words", [Stage, Category])
def test_every_word_of_a_failure_has_its_line_of_documentation(words: type[Stage]) -> None:
    assert set(meanings(words)) == set(words)


def test_every_setting_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in DshConfig.model_fields if code(name) not in text] == []
