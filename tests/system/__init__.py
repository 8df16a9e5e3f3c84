"""Tests of the whole platform. The first in a process starts one, which ends with the last (scope `package`)."""
