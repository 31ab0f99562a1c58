"""The judge as a scorer of Inspect: of the last reply of a sample, after all turns before it.

`python examples/run.py inspect` runs it in an environment of its own. Elsewhere:
pip install "dialeval[offline]" inspect-ai, then

    inspect eval examples/integrations/inspect/task.py --model openai/gpt-4o-mini

or, as here, with replies that are there already: python examples/integrations/inspect/task.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import anyio
from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

import dialeval

JUDGE = dialeval.load("judge")
SAMPLES = {
    "Great, but I lost my suitcase.": "Oh no! Did the airline find it?",
    "Do you have a pet?": "The library closes at six on Fridays.",
}


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def dialogue_judge() -> Scorer:
    """The judge's value, with its reason as explanation and its aspects as metadata; facts stand in the metadata."""

    async def score(state: TaskState, target: Target) -> Score:
        messages = [
            message for message in state.messages if isinstance(message, ChatMessageUser | ChatMessageAssistant)
        ]
        *context, reply = [message.text for message in messages if message.text]
        facts: list[str] = state.metadata.get("facts", [])
        # Scoring is computing, not waiting: in a thread, other samples go on.
        scores = await anyio.to_thread.run_sync(lambda: JUDGE.score([reply], [context], facts=[facts]))
        aspects: dict[str, Any] = {name: float(column[0]) for name, column in scores.aspects.items()}
        return Score(value=scores[0], answer=reply, explanation=scores.explain(0), metadata=aspects)

    return score


@task  # type: ignore[untyped-decorator]
def small_talk() -> Task:
    """Two samples, each after a turn of before."""
    before = [ChatMessageUser(content="Hello!"), ChatMessageAssistant(content="Hi, how are you?")]
    samples = [Sample(input=[*before, ChatMessageUser(content=asked)]) for asked in SAMPLES]
    return Task(dataset=samples, solver=generate(), scorer=dialogue_judge())


def main() -> None:
    """Evaluate replies that are there already, as a model of Inspect's own that says what it is told."""
    replies = [ModelOutput.from_content("mockllm/model", reply) for reply in SAMPLES.values()]
    for reply in replies:
        reply.usage = ModelUsage()  # else Inspect would fetch a tokenizer to count tokens with
    model = get_model("mockllm/model", custom_outputs=replies)
    with tempfile.TemporaryDirectory() as folder:
        (log,) = eval(small_talk(), model=model, display="none", log_dir=folder, max_samples=1)
        for sample in log.samples or []:
            score = (sample.scores or {})["dialogue_judge"]
            print("good" if score.as_float() > 0.5 else "bad ", "reply:", score.answer)


if __name__ == "__main__":
    main()
