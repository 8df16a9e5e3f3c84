"""What Prometheus scrapes of one process: families, the loop's lag, and the listener.

Each process gives its sources to `measured_process`, which serves them on a port of their own.
"""

from pilotlight_core.host.metrics.loop_watch import LoopWatch
from pilotlight_core.host.metrics.measured_process import measured_process
from pilotlight_core.host.metrics.metrics_listener import CannotListen
from pilotlight_core.host.metrics.process_metrics import ProcessMetrics

__all__ = ["CannotListen", "LoopWatch", "ProcessMetrics", "measured_process"]
