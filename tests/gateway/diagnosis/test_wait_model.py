from __future__ import annotations

import math

from pilotlight_gateway.diagnosis.diagnosis_window import BatchTimes
from pilotlight_gateway.diagnosis.wait_model import batch_line, wait_factor, weighted_quantile


def test_the_line_of_batches_is_that_of_least_squares() -> None:
    line = batch_line([BatchTimes(1, 10, 21.0), BatchTimes(8, 5, 28.0), BatchTimes(16, 20, 36.0)])

    assert math.isclose(line.fixed_ms, 20.0)
    assert math.isclose(line.each_ms, 1.0)
    assert math.isclose(line.ms(32), 52.0)


def test_batches_of_one_size_take_their_mean_time_whatever_the_size() -> None:
    line = batch_line([BatchTimes(4, 10, 30.0)])

    assert (line.ms(4), line.ms(16)) == (30.0, 30.0)


def test_no_batch_takes_less_than_no_time() -> None:
    line = batch_line([BatchTimes(8, 1, 10.0), BatchTimes(16, 1, 40.0)])

    assert line.fixed_ms >= 0


def test_nothing_is_known_of_no_batches() -> None:
    assert batch_line([]).ms(8) == 0.0


def test_one_server_waits_as_long_as_in_the_textbook() -> None:
    assert math.isclose(wait_factor(1, 0.5), 1.0)  # M/M/1: rho / (1 - rho)
    assert math.isclose(wait_factor(1, 0.9), 9.0)


def test_more_servers_wait_less_and_a_full_queue_for_ever() -> None:
    assert wait_factor(8, 0.8) < wait_factor(2, 0.8) < wait_factor(1, 0.8)
    assert wait_factor(4, 0.999) == math.inf


def test_a_quantile_counts_weights() -> None:
    values = [(10.0, 94.0), (20.0, 1.0), (900.0, 5.0)]

    assert weighted_quantile(values, 0.95) == 20.0
    assert weighted_quantile(values, 0.96) == 900.0
    assert weighted_quantile([], 0.95) == 0.0
