"""The judge's head for relevance as a classifier of promptfoo, without dialeval: what `dialeval export judge` wrote.

promptfoo's `classifier` gives one text, so an assertion hands over context and reply as JSON, see promptfooconfig.yaml.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any


@cache
def classifier() -> Any:
    """The exported folder, which `CROSS_ENCODER` names; promptfoo waits for a file, and not for what it imports."""
    from transformers import pipeline

    return pipeline("text-classification", model=os.environ["CROSS_ENCODER"], function_to_apply="sigmoid")


def call_classification_api(prompt: str, options: dict[str, Any]) -> dict[str, Any]:
    """A share for the one label: below a half the reply fits less well than most that people rated."""
    [result] = classifier()([json.loads(prompt)], truncation="longest_first")
    return {"classification": {result["label"]: result["score"]}}
