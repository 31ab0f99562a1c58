"""The publications behind the benchmarks, cited once for all that share them."""

from __future__ import annotations

from typing import NamedTuple


class Citation(NamedTuple):
    """How to cite a benchmark."""

    citation: str
    bibtex: str


def _paper(key: str, authors: str, title: str, venue: str, year: int) -> Citation:
    surnames = [author.split(",")[0] for author in authors.split(" and ")]
    short = (
        surnames[0] if len(surnames) == 1 else " and ".join(surnames) if len(surnames) == 2 else f"{surnames[0]} et al."
    )
    bibtex = (
        f"@inproceedings{{{key},\n  author = {{{authors}}},\n  title = {{{{{title}}}}},\n"
        f"  booktitle = {{{venue}}},\n  year = {{{year}}}\n}}"
    )
    return Citation(f"{short} ({year}): {title}. {venue}.", bibtex)


GRADE = _paper(
    "huang2020grade",
    "Huang, Lishan and Ye, Zheng and Qin, Jinghui and Lin, Liang and Liang, Xiaodan",
    "GRADE: Automatic Graph-Enhanced Coherence Metric for Evaluating Open-Domain Dialogue Systems",
    "EMNLP",
    2020,
)
ZHAO = _paper(
    "zhao2020designing",
    "Zhao, Tianyu and Lala, Divesh and Kawahara, Tatsuya",
    "Designing Precise and Robust Dialogue Response Evaluators",
    "ACL",
    2020,
)
USR = _paper(
    "mehri2020usr",
    "Mehri, Shikib and Eskenazi, Maxine",
    "USR: An Unsupervised and Reference Free Evaluation Metric for Dialog Generation",
    "ACL",
    2020,
)
FED = _paper(
    "mehri2020fed",
    "Mehri, Shikib and Eskenazi, Maxine",
    "Unsupervised Evaluation of Interactive Dialog with DialoGPT",
    "SIGDIAL",
    2020,
)
DSTC9 = _paper(
    "gunasekara2020dstc9",
    "Gunasekara, Chulaka and Kim, Seokhwan and D'Haro, Luis Fernando and Rastogi, Abhinav and others",
    "Overview of the Ninth Dialog System Technology Challenge: DSTC9",
    "arXiv 2011.06486",
    2020,
)
DAILYDIALOGPP = _paper(
    "sai2020improving",
    "Sai, Ananya B. and Mohankumar, Akash Kumar and Arora, Siddhartha and Khapra, Mitesh M.",
    "Improving Dialog Evaluation with a Multi-reference Adversarial Dataset and Large Scale Pretraining",
    "Transactions of the Association for Computational Linguistics",
    2020,
)
FBD = _paper(
    "xiang2021assessing",
    "Xiang, Jiannan and Liu, Yahui and Cai, Deng and Li, Huayang and Lian, Defu and Liu, Lemao",
    "Assessing Dialogue Systems with Distribution Distances",
    "Findings of ACL-IJCNLP",
    2021,
)
ATTACKS = _paper(
    "khalid2022explaining",
    "Khalid, Baber and Lee, Sungjin",
    "Explaining Dialogue Evaluation Metrics using Adversarial Behavioral Analysis",
    "NAACL",
    2022,
)
