"""How often raters agree when the judge calls a reply a contradiction of what its own side said before.

    python training/contradictions.py --ratings RATINGS

ABC-Eval's raters marked self-contradictions reply by reply; it belongs to no benchmark.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from dialeval.approaches.row_signs import own_turns
from dialeval.approaches.signs import contradiction
from dialeval.corpora.ratings import read_ratings


def main() -> None:
    """Count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=Path, required=True, help="folder with SOURCE.jsonl.gz of each rated source")
    rows = read_ratings(parser.parse_args().ratings, "abc_eval", level="turn")
    marked = [row for row in rows if row.scores.get("self contradiction", 0) > 0]
    found = [row for row in rows if contradiction(row.exchange.response, own_turns(row.exchange))]
    right = [row for row in found if row in marked]
    print(f"{len(rows)} replies, {len(marked)} marked by raters; {len(found)} found, {len(right)} of them marked")


if __name__ == "__main__":
    main()
