"""check_truth.py OUT.h5 TRUTH_PATTERN LIMIT: every frame's phases correlate with the truth by at least LIMIT."""
import sys

import h5py
import numpy as np

out, pattern, limit = h5py.File(sys.argv[1])["entry"], sys.argv[2], float(sys.argv[3])
for method in ("phase", "complex"):
    for frame, images in enumerate(out[method]["phase"]):
        truth = h5py.File(pattern.format(frame))["entry/truth/phase"][:]
        assert images.shape[1:] == truth.shape, (images.shape, truth.shape)
        correlation = np.corrcoef(images[0].ravel(), truth.ravel())[0, 1]
        slope = (images[0] * truth).sum() / (truth * truth).sum()
        print(f"{method} frame {frame}: correlation {correlation:.5f}, slope {slope:.4f}")
        assert correlation >= limit and abs(slope - 1) <= 0.02, (method, frame, correlation, slope)
