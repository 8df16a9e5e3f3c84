"""`python -m tools`: everything that holds the tree, in one process, which reads each file of the product once."""

from __future__ import annotations

import sys

from tools import house, lengths, mirror, pages, requirements, words

CHECKS = (house.main, words.main, mirror.main, lengths.main, requirements.main, pages.main)

if __name__ == "__main__":
    sys.exit(max(check() for check in CHECKS))
