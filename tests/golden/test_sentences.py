"""The words of help, errors and reasons stand in one file; every other test asks for types, codes and names."""

from sentences import GOLDEN, sentences

AGAIN = "run: PYTHONPATH=.:tests/support python tests/golden/sentences.py"


def test_sentences_are_those_of_the_golden_file() -> None:
    assert sentences().splitlines() == GOLDEN.read_text("utf-8").splitlines(), AGAIN
