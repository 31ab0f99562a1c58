"""A real engine: `transformers serve` with a tiny random model, so that the wire format is none of ours."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

import dialeval
from dialeval.exchange import Exchange

pytest.importorskip("openai")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

pytestmark = pytest.mark.slow

#: Roles and texts one after the other.
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}assistant:"


def tiny_model(folder):
    """A LLaMA of random weights whose tokens are bytes; whatever it answers is gibberish."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=4096,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    ).save_pretrained(folder)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny-model")
    tiny_model(folder)
    port = free_port()
    log = (folder / "log.txt").open("wb")
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    program = "from transformers.cli.transformers import main; main()"
    arguments = ["serve", str(folder), "--port", str(port), "--host", "127.0.0.1", "--device", "cpu"]
    process = subprocess.Popen([sys.executable, "-c", program, *arguments], env=env, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    shown = (folder / "log.txt").read_text(errors="replace").strip().splitlines()
                    pytest.skip(f"transformers serve does not start here: {shown[-1] if shown else 'it says nothing'}")
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        process.kill()
        process.wait()
        log.close()


@pytest.fixture(autouse=True)
def _no_key(monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def rows(count):
    return [Exchange(("Which one?",), f"I take {number}.") for number in range(count)]


def test_gibberish_is_no_value_and_what_was_said_is_kept(engine):
    url, model = engine
    metric = dialeval.load("llm", model=model, base_url=url, max_tokens=8, concurrency=2, timeout=120)
    found = metric.score_exchanges(rows(4))
    # A random model may hit a form by chance, but not four of four JSON objects in eight tokens.
    assert found.problems.keys() == {0, 1, 2, 3}
    assert not found.passing, found.problems
    usage = found.details["usage"]
    assert (usage["questions"], usage["unanswered"], usage["estimated"]) == (4, 0, 0)
    assert usage["tokens_in"] > 4 * 1000  # a token is a byte here
    assert 4 <= usage["tokens_out"] <= 4 * 8
    again = metric.score_exchanges(rows(4))
    assert (again.details["usage"]["calls"], again.details["usage"]["kept"]) == (0, 4)


def test_a_server_without_probabilities_is_asked_for_samples(engine):
    url, model = engine
    metric = dialeval.load(
        "llm", model=model, base_url=url, protocol="g_eval", samples=3, max_tokens=2, concurrency=2, timeout=120
    )
    found = metric.score_exchanges(rows(1))
    assert found.signature["weighting"] == "3 samples"
    asked = metric.members[0].often
    answer = asked.kept(metric.questions_about(rows(1)[0])[0])
    assert len(answer.texts) == 3
    assert answer.calls == 3


def test_a_model_that_is_not_there(engine, tmp_path):
    url, _ = engine
    metric = dialeval.load("llm", model="no/such-model", base_url=url, max_tokens=2, retries=0, timeout=120)
    found = metric.score_exchanges(rows(1))
    assert found.problems.keys() == {0}
