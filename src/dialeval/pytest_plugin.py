"""A gate in a test suite: `assert_not_worse(new_rows, baseline_rows, metric="judge", margin=0.02)`.

pytest finds the fixture by itself once dialeval is installed; `from dialeval.pytest_plugin import assert_not_worse`
does the same without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialeval.systems import Gate


def assert_not_worse(new: Any, baseline: Any, metric: Any = "judge", *, margin: float, **options: Any) -> Gate:
    """Fail with one sentence if `new` is, or may be, worse than `baseline` by more than `margin`.

    The arguments are those of `dialeval.gate`.
    """
    from dialeval.systems import gate

    found = gate(new, baseline, metric, margin=margin, **options)
    if not found.passed:
        raise AssertionError(found.sentence)
    return found


def pytest_configure(config: Any) -> None:
    """Register the fixture; pytest itself is imported only where it runs."""
    import pytest

    class Fixtures:
        @pytest.fixture(scope="session", name="assert_not_worse")
        def gate_fixture(self) -> Any:
            """The function of the same name."""
            return assert_not_worse

    config.pluginmanager.register(Fixtures(), "dialeval-fixtures")
