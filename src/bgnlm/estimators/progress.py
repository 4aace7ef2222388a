"""Progress of a fit: a bar in the terminal, and scikit-learn's callbacks where the installed version has them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from bgnlm.find import reporting
from bgnlm.search.runner import Report, RunProgress

Method = TypeVar("Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for what this version does not have."""

    def _with_callbacks(method: Any) -> Any:
        return method


def with_callbacks(method: Method) -> Method:
    """Make a method that takes down its callbacks, however it ends."""
    return cast("Method", _with_callbacks(method))


@contextmanager
def progress_of(estimator: Any, n_populations: int | None) -> Iterator[Report | None]:
    """Provide what is called after each population; a callback that asks to stop ends the search like Ctrl-C."""
    context = None
    if hasattr(estimator, "_init_callback_context"):
        context = estimator._init_callback_context(max_subtasks=n_populations)
        context.call_on_fit_task_begin(estimator=estimator)
    with reporting(bool(estimator.verbose)) as bar:

        def report(progress: RunProgress) -> None:
            if bar is not None:
                bar(progress)
            if context is not None:
                task = context.subcontext(task_name="population")
                task.call_on_fit_task_begin(estimator=estimator)
                if task.call_on_fit_task_end(estimator=estimator):
                    raise KeyboardInterrupt

        has_callbacks = context is not None and bool(getattr(estimator, "_skl_callbacks", None))
        yield report if has_callbacks else bar
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator)


__all__ = ["CallbackSupportMixin", "progress_of", "with_callbacks"]
