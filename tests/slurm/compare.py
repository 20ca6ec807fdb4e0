"""Holds outputs against an undisturbed one: compare.py REFERENCE.h5 OUTPUT.h5 ...

Every frame of each must be done, and every result the same to the last bit.
"""
import sys

import h5py
import numpy as np

DONE = 1


def results(file):
    found = {}
    for group in ("ssb", "phase", "complex"):
        if group in file["entry"]:
            file["entry"][group].visititems(
                lambda name, item, group=group: found.update({f"{group}/{name}": item[()]}) if isinstance(item, h5py.Dataset) else None
            )
    return found


def problems(reference, path):
    with h5py.File(path) as file:
        state = file["entry/frames/state"][()]
        if not np.all(state == DONE):
            return [f"frame states are {state.tolist()}, expected {DONE} everywhere"]
        found = results(file)
    if set(found) != set(reference):
        return [f"results differ: {sorted(set(found) ^ set(reference))}"]
    return [f"{name} differs" for name in reference if found[name].tobytes() != reference[name].tobytes()]


with h5py.File(sys.argv[1]) as reference_file:
    expected = results(reference_file)
assert expected, "the reference holds no results"
bad = False
for output in sys.argv[2:]:
    for problem in problems(expected, output):
        print(f"{output}: {problem}", file=sys.stderr)
        bad = True
sys.exit(bad)
