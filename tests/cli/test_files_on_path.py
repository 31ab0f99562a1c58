"""How many files of the library a row passes. What is meant for them is 28, 20 and 12."""

from __future__ import annotations

from pathlib import Path

import pytest

from files_on_path import of_library, of_score


@pytest.mark.slow
def test_score_of_one_file(tmp_path: Path) -> None:
    assert len(of_score(tmp_path)) <= 35
    assert len(of_score(tmp_path, after="load_metrics")) <= 23


def test_the_judge_in_python() -> None:
    assert len(of_library("judge")) <= 12
