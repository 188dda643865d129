"""Testing: conformance kits. Call one on a task, a model or an executor of your own; it raises at the first breach."""

from fathometer.testing.executors import check_executor
from fathometer.testing.models import check_model
from fathometer.testing.tasks import check_task

__all__ = ["check_executor", "check_model", "check_task"]
