#!/usr/bin/env python3
"""Compares the images of two outputs: every float dataset of the same name in both, relative to the largest value of the second.
usage: compare_images.py FOUND EXPECTED TOLERANCE; exit status 1 when any differs by more, or none is there."""
import sys

import h5py
import numpy as np

IMAGES = ("entry/ssb/phase", "entry/phase/phase", "entry/complex/phase", "entry/complex/log_amplitude")


def main():
    found, expected, tolerance = h5py.File(sys.argv[1], "r"), h5py.File(sys.argv[2], "r"), float(sys.argv[3])
    n_compared = failed = 0
    for name in IMAGES:
        if name not in expected:
            continue
        a, b = found[name][:], expected[name][:]
        difference = np.abs(a - b).max() / np.abs(b).max()
        good = difference <= tolerance  # false for NaN
        print(f"{name} {b.shape}: {difference:.2e} (allowed {tolerance:.0e}){'' if good else ' FAILED'}")
        n_compared += 1
        failed += not good
    return 0 if n_compared > 0 and failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
