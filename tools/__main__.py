"""`python -m tools`: everything that holds the tree, in one process, which reads each file of the product once."""

from __future__ import annotations

import gc
import sys

from tools import house, lengths, mirror, pages, requirements, words

CHECKS = (house.main, words.main, mirror.main, lengths.main, requirements.main, pages.main)

if __name__ == "__main__":
    gc.disable()  # the trees of all files stay to the end: looking for garbage among them is half of the time
    sys.exit(max(check() for check in CHECKS))
