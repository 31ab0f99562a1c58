"""How likely language models find a reply, or what a listener would say to it: causal, masked, and FED."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dialeval.baselines.models import DEFAULT_BATCH_TOKENS, input_limit, load_language_model
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.encoders.batching import choose_device, collate, token_batches
from dialeval.encoders.layout import PairFormat, PairTokenizer, TokenPair, tidy
from dialeval.io.files import parse_json, progress_bar, read_small
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo


class Continuation(NamedTuple):
    """Token ids, and from which of them on the likelihood counts."""

    ids: tuple[int, ...]
    start: int


class LanguageModelMetric(Metric):
    """One that asks a language model of Hugging Face, of the auto class `kind`, such as `example`."""

    kind: ClassVar[str]
    example: ClassVar[str]
    is_tidy = True

    def __init__(
        self,
        *,
        model: str | None = None,
        revision: str | None = None,
        max_length: int | None = None,
        device: str | None = None,
        batch_tokens: int = DEFAULT_BATCH_TOKENS,
    ) -> None:
        network, self._tokenizer, self._identity = load_language_model(
            self.kind, model, revision, needed_by=self.info.name, example=self.example
        )
        self._network: Any = network.to(choose_device(device))
        self._batch_tokens = batch_tokens
        self.max_length = input_limit(network.config, self._tokenizer, max_length)

    def variant(self) -> Mapping[str, str]:
        """What else decides a value."""
        return {}

    def signature(self) -> Signature:
        """Model, what else the metric stands on, length."""
        return Signature(
            {
                "metric": self.info.name,
                "model": self._identity,
                **self.variant(),
                "max_length": str(self.max_length),
                "tidy": str(self.is_tidy).lower(),
                "dtype": "float32",
            }
        )


class CausalMetric(LanguageModelMetric):
    """A causal language model that reads dialogues: turns are divided by the end-of-text token."""

    kind = "AutoModelForCausalLM"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self._tokenizer.eos_token_id is None:
            raise ValueError(f"{options['model']} has no end-of-text token to divide turns by; pass another model")
        self._end = int(self._tokenizer.eos_token_id)
        begin = self._tokenizer.bos_token_id
        #: Models whose beginning has a token of its own expect it.
        self._begin = () if begin is None or begin == self._end else (int(begin),)

    def tokens(self, text: str) -> list[int]:
        """Token ids of one turn. What looks like a special token in the text stays text."""
        ids: list[int] = self._tokenizer(tidy(text), add_special_tokens=False, split_special_tokens=True)["input_ids"]
        return ids

    def continuation(self, turns: Sequence[Sequence[int]], target: Sequence[int]) -> tuple[Continuation, bool]:
        """Turns and a target laid out in a row; the beginning of the turns is cut off where it is too long.

        The target keeps at most three quarters of the length. Also tells whether anything was cut.
        """
        kept = target[: self.max_length * 3 // 4]
        context = [token for turn in turns for token in (*turn, self._end)]
        room = self.max_length - len(kept) - len(self._begin)
        # Even without a context the target's first token needs something before it.
        head = (*self._begin, *context[-room:]) or (self._end,)
        cut = len(kept) < len(target) or len(context) > room
        return Continuation((*head, *kept), len(head)), cut

    def mean_log_likelihood(self, continuations: Sequence[Continuation], *, progress: bool) -> NDArray[Any]:
        """Mean log-probability of the tokens from `start` on; NaN where there are none."""
        position = {continuation: number for number, continuation in enumerate(dict.fromkeys(continuations))}
        distinct = list(position)
        values = np.full(len(distinct), np.nan)
        with progress_bar(self.info.name, len(distinct), shown=progress) as advance:
            for batch in token_batches([len(continuation.ids) for continuation in distinct], self._batch_tokens):
                values[batch] = self._run([distinct[row] for row in batch])
                advance(len(batch))
        return values[[position[continuation] for continuation in continuations]]

    @torch.inference_mode()
    def _run(self, batch: Sequence[Continuation]) -> list[float]:
        width = max(len(continuation.ids) for continuation in batch)
        ids = torch.full((len(batch), width), self._end)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for row, continuation in enumerate(batch):
            ids[row, : len(continuation.ids)] = torch.tensor(continuation.ids)
            mask[row, : len(continuation.ids)] = 1
        device = self._network.device
        logits = self._network(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        means = []
        for row, continuation in enumerate(batch):
            # What stands at a position is foretold by the position before it.
            foretold = logits[row, continuation.start - 1 : len(continuation.ids) - 1].float().log_softmax(dim=-1).cpu()
            truth = torch.tensor(continuation.ids[continuation.start :], dtype=torch.long)
            likelihoods = foretold[torch.arange(len(truth)), truth].double()
            means.append(float(likelihoods.mean()) if len(likelihoods) else float("nan"))
        return means


class CausalLikelihood(CausalMetric):
    """Mean log-probability of the reply's tokens after the context (minus the log of its perplexity).

    The end of the reply is not part of it. The papers tune GPT-2 on their corpus first; any causal
    LM of Hugging Face can be given.
    """

    info = MetricInfo(
        name="lm_likelihood",
        title="Causal-LM likelihood",
        level=Level.TURN,
        higher_is_better=True,
        range=(-np.inf, 0.0),
        summary="mean log-probability of the reply's tokens after the context",
        citation="Pang et al. 2020, Towards Holistic and Automatic Evaluation of Open-Domain Dialogue Generation",
    )
    example = "gpt2"

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One value per exchange; equal exchanges are computed once."""
        laid = [
            self.continuation([*map(self.tokens, row.facts + row.context)], self.tokens(row.response))
            for row in exchanges
        ]
        values = self.mean_log_likelihood([continuation for continuation, _ in laid], progress=progress)
        return Judged(values=values, n_truncated=sum(cut for _, cut in laid))


class MaskedLikelihood(LanguageModelMetric):
    """Each token of the reply is masked in turn, given the context and the rest of the reply.

    The value is the mean of the tokens' log-probabilities. A reply without tokens has none (NaN). The papers tune the
    model on their corpus first; any masked LM of Hugging Face can be given.
    """

    info = MetricInfo(
        name="mlm_likelihood",
        title="Masked-LM likelihood",
        level=Level.TURN,
        higher_is_better=True,
        range=(-np.inf, 0.0),
        summary="log-probability of the reply's tokens, each masked in turn",
        citation="Mehri and Eskenazi 2020, USR: An Unsupervised and Reference Free Evaluation Metric (USR-MLM)",
    )
    kind = "AutoModelForMaskedLM"
    example = "bert-base-uncased"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        segments = getattr(self._network.config, "type_vocab_size", 0) > 1
        # Batches are padded to a multiple of eight, which must not exceed what the model can take.
        layout = PairFormat(max_length=self.max_length // 8 * 8, segment_ids=segments)
        self.stand_on(self._network, self._tokenizer, self._identity, layout, self._batch_tokens)

    def stand_on(self, network: Any, tokenizer: Any, identity: str, layout: PairFormat, batch_tokens: int) -> None:
        """Take a network that gives logits of the vocabulary for every token, wherever it comes from."""
        self._network, self._identity, self._batch_tokens = network, identity, batch_tokens
        self._mask_id = int(tokenizer.mask_token_id)
        self.max_length, self._segments, self.is_tidy = layout.max_length, layout.segment_ids, layout.tidy
        self._pairs = PairTokenizer(tokenizer, layout)
        (empty,) = self._pairs.pairs([Exchange(context=(), response="")])
        self._tail = len(empty.ids) - empty.boundary

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One value per exchange; equal exchanges are computed once."""
        pairs = self._pairs.pairs(exchanges)
        distinct = {pair.key: pair for pair in pairs}
        value_of = dict(zip(distinct, self._values(list(distinct.values()), progress), strict=True))
        return Judged(np.array([value_of[pair.key] for pair in pairs]), n_truncated=sum(pair.cut for pair in pairs))

    def variant(self) -> Mapping[str, str]:
        """How tokens are put together."""
        return {"reduce": "mean"}

    def _values(self, pairs: Sequence[TokenPair], progress: bool) -> list[float]:
        spots = [
            (row, position)
            for row, pair in enumerate(pairs)
            for position in range(pair.boundary, len(pair.ids) - self._tail)
        ]
        likelihoods: list[list[float]] = [[] for _ in pairs]
        guessed = np.empty(len(spots))
        with progress_bar(self.info.name, len(spots), shown=progress) as advance:
            for batch in token_batches([len(pairs[row].ids) for row, _ in spots], self._batch_tokens):
                rows, places = zip(*(spots[spot] for spot in batch), strict=True)
                guessed[batch] = self._guess([pairs[row] for row in rows], places)
                advance(len(batch))
        for (row, _), logarithm in zip(spots, guessed, strict=True):
            likelihoods[row].append(logarithm)
        return [float(np.mean(logarithms)) if logarithms else float("nan") for logarithms in likelihoods]

    @torch.inference_mode()
    def _guess(self, pairs: Sequence[TokenPair], positions: Sequence[int]) -> Any:
        inputs = collate(pairs, self._pairs.pad_id, segment_ids=self._segments)
        if not self._segments:
            del inputs["token_type_ids"]
        rows, places = torch.arange(len(pairs)), torch.tensor(positions)
        targets = inputs["input_ids"][rows, places].clone()
        inputs["input_ids"][rows, places] = self._mask_id
        logits = self.logits({key: value.to(self._network.device) for key, value in inputs.items()}, rows, places)
        chosen = logits.float().log_softmax(dim=-1).cpu()
        return chosen[rows, targets].double().numpy()

    def logits(self, inputs: dict[str, torch.Tensor], rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """`[rows, vocabulary]`: the network's logits at one place of every row."""
        logits_there: torch.Tensor = self._network(**inputs).logits[rows, places]
        return logits_there


#: Quality -> kind of follow-up -> sentences.
FollowUps = Mapping[str, Mapping[str, Sequence[str]]]
Sign = Literal["positive", "negative"]
_SIGNS: tuple[Sign, ...] = ("positive", "negative")
_OWN = Path(__file__).with_name("fed_followups.json")


def read_follow_ups(path: str | Path) -> FollowUps:
    """Read `{"quality": {"positive": [...], "negative": [...]}, ...}`; one of the two lists may be missing."""
    try:
        read = parse_json(read_small(Path(path).expanduser()))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file of follow-ups at {path}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    if not isinstance(read, dict) or not read:
        raise ValueError(f"{path} holds no qualities; it maps each quality to its positive and negative follow-ups")
    for quality, lists in read.items():
        if not isinstance(lists, dict) or not lists or not set(lists) <= set(_SIGNS):
            raise ValueError(f"quality {quality!r} of {path} needs the lists 'positive' and 'negative', or one of them")
        for sign, sentences in lists.items():
            well = isinstance(sentences, list) and all(
                isinstance(sentence, str) and sentence.strip() for sentence in sentences
            )
            if not well:
                raise ValueError(f"the {sign} follow-ups of {quality!r} in {path} are not a list of sentences")
        if not any(lists.values()):
            raise ValueError(f"quality {quality!r} of {path} has no follow-ups; give it some or leave it out")
    return read


class FollowUpLikelihood(CausalMetric):
    """Mean NLL of complaining follow-ups minus mean NLL of praising ones, averaged over the qualities.

    The lists of follow-ups are this project's own; the published ones can be given as a JSON file
    (`follow_ups=`), the published model is DialoGPT-large. The likelihood is that of dialogue and
    follow-up together, as in the published code.
    """

    info = MetricInfo(
        name="fed",
        title="FED",
        level=Level.TURN,
        higher_is_better=True,
        range=(-np.inf, np.inf),
        summary="how much likelier praise is than complaint as the next turn",
        citation="Mehri and Eskenazi 2020, Unsupervised Evaluation of Interactive Dialog with DialoGPT",
    )
    example = "microsoft/DialoGPT-large"

    def __init__(self, *, follow_ups: str | Path | None = None, **options: Any) -> None:
        self.follow_ups = read_follow_ups(_OWN if follow_ups is None else follow_ups)
        super().__init__(**options)

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """One value per exchange; the values of each quality are in the details."""
        sentences = list(
            dict.fromkeys(text for lists in self.follow_ups.values() for texts in lists.values() for text in texts)
        )
        endings = [self.tokens(text) for text in sentences]
        laid: list[Continuation] = []
        n_truncated = 0
        for row in exchanges:
            turns = [self.tokens(turn) for turn in (*row.facts, *row.context, row.response)]
            of_row = [self.continuation(turns, ending) for ending in endings]
            laid += [Continuation(pair.ids, 1) for pair, _ in of_row]
            n_truncated += any(cut for _, cut in of_row)
        likelihood = self.mean_log_likelihood(laid, progress=progress)
        table = likelihood.reshape(len(exchanges), len(sentences))
        qualities = {}
        for name, lists in self.follow_ups.items():
            # The log-likelihood of praise minus that of complaint; a list that is missing counts 0.
            praise, complaint = (
                table[:, [sentences.index(text) for text in lists[sign]]].mean(axis=1) if lists.get(sign) else 0.0
                for sign in _SIGNS
            )
            qualities[name] = np.asarray(praise - complaint)
        values = np.mean(list(qualities.values()), axis=0)
        return Judged(values=values, n_truncated=n_truncated, details={"qualities": qualities})

    def variant(self) -> Mapping[str, str]:
        """The follow-ups, and over what their likelihood is."""
        digest = hashlib.sha256(json.dumps(self.follow_ups, sort_keys=True).encode()).hexdigest()
        return {"followups": f"{len(self.follow_ups)} qualities@{digest}", "over": "conversation"}
