"""`dialeval llm-score`: a language model as judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dialeval.cli import FAILED, ROWS_SET_ASIDE
from dialeval.cli import options as reading
from dialeval.cli.options import in_panel, say
from dialeval.cli.score import Input, Output, Overwrite, Resume, SkipBad, print_summary

if TYPE_CHECKING:
    from dialeval.llm.llm_judge import LlmJudge
    from dialeval.scoring import Task


_model, _cost = map(in_panel, ("Model", "Requests and cost"))


BaseUrl = Annotated[str | None, _model(help="Address of the server, .../v1 (default: OPENAI_BASE_URL, OpenAI).")]
Protocol = Annotated[str | None, _model(help="llm_eval (default), g_eval, pairwise, or a file of your own.")]
Answers = Annotated[Path | None, _cost(help="Folder of cached answers (default: user cache).")]
Rival = Annotated[Path | None, reading.option(help="For pairwise: another system's replies to the same rows.")]


def llm_score(
    context: typer.Context,
    input: Input,
    output: Output,
    model: Annotated[str | None, _model(help="Name of the model on the server.")] = None,
    base_url: BaseUrl = None,
    protocol: Protocol = None,
    max_tokens: Annotated[int | None, _model(help="Maximum tokens of an answer; reasoning models need more.")] = None,
    config: Annotated[
        Path | None, _model(help="YAML: these options, key_variable (of the key), retries and others.")
    ] = None,
    concurrency: Annotated[int | None, _cost(help="Maximum number of requests at once (default: 8).")] = None,
    timeout: Annotated[float | None, _cost(help="Seconds for an answer, all tries (default: 60).")] = None,
    prices: Annotated[Path | None, _cost(help="YAML: model: {input: 0.15, output: 0.6}, $ per million tokens.")] = None,
    max_cost: Annotated[float | None, _cost(help="Stop at this cost, in dollars.")] = None,
    answers: Answers = None,
    dry_run: Annotated[
        bool, _cost("--dry-run", help="Print the number of questions, tokens, cost and the first prompt; ask nothing.")
    ] = False,
    level: Annotated[Literal["turn", "dialogue"], reading.option(help="Judge replies, or whole dialogues.")] = "turn",
    rival: Rival = None,
    empty: reading.Empty = "error",
    skip_bad: SkipBad = False,
    overwrite: Overwrite = False,
    resume: Resume = True,
) -> None:
    """Score replies with a language model.

    The server must speak OpenAI's chat completions: OpenAI, vLLM, Ollama, llama.cpp and others. Input and output are as
    in [bold]dialeval score[/bold]; the column llm.answer holds what the model answered. Answers are cached, so that
    running the same command again asks only for what is missing.

    [bold]Examples[/bold]

    $ dialeval llm-score --model gpt-4o-mini -i rows.jsonl -o scores.jsonl --prices prices.yaml --dry-run

    $ dialeval llm-score --model gpt-4o-mini -i rows.jsonl -o scores.jsonl --prices prices.yaml --max-cost 2

    $ dialeval llm-score --model my-model --base-url http://localhost:8000/v1 -i rows.jsonl -o scores.jsonl

    $ dialeval llm-score --config judge.yaml -i dialogues.jsonl -o scores.jsonl --level dialogue

    [bold]Exit codes[/bold]: 0 done; 1 no row has a value, or the program or the machine failed; 2 wrong usage or input,
    or the cost limit is reached; 3 done, but rows were set aside (--skip-bad) or have no value; 130 interrupted.
    """
    from dataclasses import replace

    from dialeval.io.files import progress_counter
    from dialeval.registry.interface import Level
    from dialeval.scoring import Task, score_file

    options = {
        "model": model, "base_url": base_url, "protocol": protocol, "max_tokens": max_tokens,
        "concurrency": concurrency, "timeout": timeout, "prices": prices, "max_cost": max_cost, "answers": answers,
    }  # fmt: skip
    judge = _load(config, {name: value for name, value in options.items() if value is not None}, dry_run=dry_run)
    source = reading.reader(context)(input)
    task = Task(source, {"llm": judge.info}, Level(level), empty=empty)
    if rival is not None:
        task = task.against(replace(source, input=str(rival)))
    if dry_run:
        first = judge.protocol.questions(next(item for _, item in task.rows(None)))[0]
        messages = [f"[{message['role']}]\n{message['content']}" for message in first.messages]
        say(_estimated(judge, task), "", "The first question:", *"\n\n".join(messages).split("\n"))
        return
    if source.can_be_read_twice and not skip_bad:
        say(_estimated(judge, task), err=True)
    with progress_counter("scoring", "reading and loading") as progress:
        summary = score_file(
            task, output, lambda: {"llm": judge},
            skip_bad=skip_bad, overwrite=overwrite, resume=resume, progress=progress,
            reads=tuple(path for path in (config, prices, protocol, rival) if path is not None),
        )  # fmt: skip
    print_summary(summary, output)
    without = summary.n - summary.tallies["llm"].mean.n
    if without == summary.n:
        say(
            "error: no row has a value; the reasons stand above, what the model answered in the column llm.answer",
            err=True,
        )
        raise typer.Exit(FAILED)
    if without:
        say(f"{without} of {summary.n} rows have no value; --overwrite asks for them again", err=True)
    if without or summary.n_rejected:
        raise typer.Exit(ROWS_SET_ASIDE)


def _load(config: Path | None, options: dict[str, Any], *, dry_run: bool) -> LlmJudge:
    import os

    from dialeval.llm.llm_judge import LlmJudge
    from dialeval.registry import load

    if dry_run and config is None and not os.environ.get("OPENAI_BASE_URL"):
        # Counting needs no key, which only OpenAI's default address asks for.
        options.setdefault("base_url", "https://api.openai.com/v1")
    judge = load("llm" if config is None else f"llm:{config}", **options)
    assert isinstance(judge, LlmJudge)
    return judge


def _estimated(judge: LlmJudge, task: Task) -> str:
    counts = judge.estimate(item for _, item in task.rows(None))
    text = f"{counts['questions']:.0f} questions, {counts['cached']:.0f} of them cached; about "
    text += f"{counts['tokens_in']:.0f} tokens to read and at most {counts['tokens_out']:.0f} to write"
    return f"{text}; at most about ${counts['cost']:.6f}" if counts["cost"] else text
