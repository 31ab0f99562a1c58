"""Which tests concern which file. Those that need the real encoder or start other processes are left out."""

from __future__ import annotations

_STATISTICS = ("test_statistics.py", "test_statistics_resampling.py", "test_statistics_rules.py")
_NETWORK = "test_approach_networks.py"
_SETS = ("test_fbd_metric.py", "test_intervals.py")

#: File below src/dialeval -> test files.
TARGETS: dict[str, tuple[str, ...]] = {
    "approaches/cmn.py": ("test_cmn.py", "test_cmn_metric.py", _NETWORK),
    "approaches/cmn_network.py": ("test_cmn.py", "test_cmn_metric.py", _NETWORK),
    "approaches/deb.py": ("test_deb.py", _NETWORK),
    "approaches/density.py": ("test_density.py", "test_density_metric.py", "test_density_relative.py", _NETWORK),
    "approaches/fbd.py": ("test_fbd.py", *_SETS),
    "approaches/judge.py": ("test_judge.py", _NETWORK),
    "approaches/reasons.py": ("test_judge.py", "test_explain.py", "test_verdicts.py"),
    "approaches/row_signs.py": ("test_judge.py",),
    "approaches/prd.py": ("test_prd.py", *_SETS),
    "approaches/quantidce.py": ("test_quantidce.py", _NETWORK),
    "approaches/signs.py": ("test_signs.py", "test_judge.py"),
    "approaches/stack.py": ("test_stack.py",),
    "engine/formatting.py": ("test_formatting.py", "test_formatting_edges.py"),
    "engine/encoding.py": ("test_encoding.py", "test_encoding_rules.py"),
    "engine/moments.py": ("test_density.py", "test_fbd.py", "test_intervals.py"),
    "statistics/bootstrap.py": _STATISTICS,
    "statistics/paired_tests.py": _STATISTICS,
    "statistics/corrections.py": _STATISTICS,
    "statistics/correlation.py": _STATISTICS,
}
