"""Which tests concern which file. Those that need the real encoder or start other processes are left out."""

_STATISTICS = ("test_statistics.py",)
_NETWORK = "test_approach_networks.py"
_SETS = ("test_fbd_metric.py", "test_prd.py")

#: File below src/dialeval -> test files.
TARGETS: dict[str, tuple[str, ...]] = {
    "papers/cmn.py": ("test_cmn.py", _NETWORK),
    "papers/cmn_network.py": ("test_cmn.py", _NETWORK),
    "papers/deb.py": ("test_deb.py", _NETWORK),
    "papers/density.py": ("test_density.py", _NETWORK),
    "papers/fbd.py": ("test_fbd.py", *_SETS),
    "judge/metric.py": ("test_judge.py", _NETWORK),
    "judge/network.py": ("test_judge.py", _NETWORK),
    "judge/rule.py": ("test_judge.py", "test_fitting.py"),
    "judge/reasons.py": ("test_judge.py", "test_explain.py", "test_verdicts.py"),
    "judge/row_signs.py": ("test_judge.py",),
    "papers/prd.py": _SETS,
    "papers/quantidce.py": ("test_quantidce.py", _NETWORK),
    "judge/lexical.py": ("test_lexical.py", "test_judge.py"),
    "judge/fitting.py": ("test_fitting.py",),
    "encoders/layout.py": ("test_layout.py",),
    "encoders/batching.py": ("test_batching_rules.py",),
    "statistics/moments.py": ("test_density.py", "test_fbd.py", "test_prd.py"),
    "statistics/bootstrap.py": _STATISTICS,
    "statistics/paired_tests.py": _STATISTICS,
    "statistics/correlation.py": _STATISTICS,
}
