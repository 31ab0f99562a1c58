"""A gate in a test suite: `assert_not_worse(new_rows, baseline_rows, metric="judge", margin=0.02)`.

pytest finds the fixture by itself once dialeval is installed; `from dialeval.pytest_plugin import assert_not_worse`
does the same without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dialeval.systems import Gate


def assert_not_worse(new: Any, baseline: Any, metric: Any = "judge", *, margin: float, **options: Any) -> Gate:
    """Fail if `new` is, or may be, worse than `baseline` by more than `margin`, and say by what and where.

    Rows that cannot be read and unknown options fail in one sentence. The arguments are those of `dialeval.gate`.
    What misleads about the rows, and what got worse beside a value that did not, is warned of, or told beside a
    failure.
    """
    __tracebackhide__ = True
    import inspect
    import warnings

    from dialeval.systems import gate

    try:
        if unknown := options.keys() - inspect.signature(gate).parameters.keys():
            known = ", ".join(inspect.signature(gate).parameters)
            raise ValueError(f"there is no option {', '.join(sorted(unknown))}; there are {known}")
        outcome = gate(new, baseline, metric, margin=margin, **options)
    except (OSError, ValueError) as error:
        import pytest

        raise pytest.fail.Exception(str(error), pytrace=False) from None
    if not outcome.passed:
        raise AssertionError("\n".join((outcome.report, *(f"warning: {warning}" for warning in outcome.warnings))))
    for sentence in (*outcome.warnings, *filter(None, [outcome.losses])):
        warnings.warn(sentence, stacklevel=2)
    return outcome


def pytest_configure(config: Any) -> None:
    """Register the fixture; pytest itself is imported only where it runs."""
    from types import ModuleType

    import pytest

    @pytest.fixture(scope="session", name="assert_not_worse")
    def gate_fixture() -> Any:
        """The function of the same name."""
        return assert_not_worse

    # A module of its own: of other objects pytest takes methods only, and a session has no instance.
    fixtures = ModuleType("dialeval_fixtures")
    fixtures.gate_fixture = gate_fixture  # type: ignore[attr-defined]
    config.pluginmanager.register(fixtures, "dialeval-fixtures")
