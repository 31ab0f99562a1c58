"""What each approach's checkpoints measure, what they do not, and where they fail."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class About:
    """What no config can say."""

    measures: str
    misses: str
    limits: tuple[str, ...]
    bibtex: str


ABOUT: dict[str, About] = {
    "density": About(
        measures="How much a reply, seen in its context, resembles the human replies that the weights learned from.",
        misses="Whether an unusual reply is a good one: it lies far from the centre either way, and a safe platitude "
        "lies close to it.",
        limits=(
            "Values live in the feature space of one checkpoint and follow one rule (`scoring`: the paper's "
            "`mahalanobis`, `relative`, `euclidean`, `classifier`; `default_scoring` in `config.json`), so they do not "
            "compare between checkpoints or rules; `human_percentile` does.",
            "Common, short, agreeable replies are favoured over specific ones.",
        ),
        bibtex="""@inproceedings{park-etal-2023-density,
  title = "{DE}nsity: Open-domain Dialogue Evaluation Metric using Density Estimation",
  author = "Park, ChaeHun and Lee, Seungil Chad and Rim, Daniel and Choo, Jaegul",
  booktitle = "Findings of the Association for Computational Linguistics: ACL 2023",
  year = "2023",
}""",
    ),
    "deb": About(
        measures="The probability that a reply is a valid next turn of its context.",
        misses="Which of two valid replies is the better one: both may be near 1.",
        limits=(
            "The probability is calibrated for a mixture of right, random and adversarial replies like that of its "
            "validation data; among the replies of one decent system it is mostly close to 1.",
            "Replies that take up the words of the context without answering it are the hardest to reject.",
        ),
        bibtex="""@article{sai-etal-2020-improving,
  title = "Improving Dialog Evaluation with a Multi-reference Adversarial Dataset and Large Scale Pretraining",
  author = "Sai, Ananya B. and Mohankumar, Akash Kumar and Arora, Siddhartha and Khapra, Mitesh M.",
  journal = "Transactions of the Association for Computational Linguistics",
  year = "2020",
}""",
    ),
    "quantidce": About(
        measures="Coherence of a reply with its context on the annotators' scale from 1 to 5.",
        misses="Other qualities that people rate, such as fluency or interest.",
        limits=(
            "The scale was learned from a few hundred ratings of replies to everyday conversation; its ends are "
            "less certain than its middle.",
            "What annotators of that data did not mark down, it does not mark down.",
        ),
        bibtex="""@inproceedings{ye-etal-2021-towards,
  title = "Towards Quantifiable Dialogue Coherence Evaluation",
  author = "Ye, Zheng and Lu, Liucun and Huang, Lishan and Lin, Liang and Liang, Xiaodan",
  booktitle = "Proceedings of the 59th Annual Meeting of the Association for Computational Linguistics",
  year = "2021",
}""",
    ),
    "cmn": About(
        measures="How much context, reply and reference tell about each other in a latent space.",
        misses="Quality that the reference does not have: a good reply that says something else than the reference "
        "loses the second half of its score.",
        limits=(
            "The bound cannot exceed what the number of negatives allows, so very good replies are not told apart.",
            "Part of the score is estimated by sampling; it is seeded per row and repeats exactly.",
        ),
        bibtex="""@inproceedings{zhao-etal-2023-evaluating,
  title = "Evaluating Open-Domain Dialogues in Latent Space with Next Sentence Prediction and Mutual Information",
  author = "Zhao, Kun and Yang, Bohao and Lin, Chenghua and Rong, Wenge and Villavicencio, Aline and Cui, Xiaohui",
  booktitle = "Proceedings of the 61st Annual Meeting of the Association for Computational Linguistics",
  year = "2023",
}""",
    ),
    "judge": About(
        measures="How good people would find a reply, as a weighted mean of opinions learned from human ratings and of "
        "plain signs of its words; each aspect stands beside the value.",
        misses="Whether what a reply says is true, safe or in character; what no rater of its sources was asked about.",
        limits=(
            "0.5 is the middle of the replies that it was fitted on, mostly those of chatbots before 2021; values say "
            "who is better, not how many people would be pleased.",
            "Signs of words know English only, and so does the encoder.",
            "The interval is wide: single ratings by people differ much, and coverage was measured on sources left "
            "out, where it is not always 90 %.",
        ),
        bibtex="""@software{dialeval-judge,
  title = "The judge of dialeval: opinions learned from human ratings, and plain signs",
  author = "{The dialeval developers}",
  url = "https://github.com/dialeval/dialeval",
}""",
    ),
}
