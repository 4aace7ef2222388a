"""Progress of a fit: a bar in the terminal, and scikit-learn's callbacks where the installed version has them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from bgnlm.find import reporting
from bgnlm.search.runner import Report, RunProgress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for what this version does not have."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


@contextmanager
def progress_of(estimator: Any, n_populations: int) -> Iterator[Report | None]:
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
