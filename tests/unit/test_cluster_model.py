#!/usr/bin/env python3
"""The simulation of a cluster obeys what must hold whatever the constants: few ranks compute, many are bound by the server that is slowest."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import cluster_model as model  # noqa: E402

FREE = {"change_s": 1e-12, "latency_s": 1e-12, "line_s": 1e-12, "lock_s": 1e-12, "read_B_s": 1e18, "write_B_s": 1e18}
KIND = (1.0, 1e9, 1e8)


class Model(unittest.TestCase):
    def test_ranks_without_obstacles_are_as_many_times_as_fast(self):
        one, many = model.simulate(1, KIND, FREE), model.simulate(50, KIND, FREE)
        self.assertAlmostEqual(one["frames_s"], 1, delta=0.1)
        self.assertAlmostEqual(many["frames_s"], 50, delta=6)
        self.assertLess(max(many[name] for name in ("counter", "reading", "writing", "log")), 1e-3)

    def test_the_slowest_server_bounds(self):
        for name, key, slow, frames_s in (("reading", "read_B_s", 1e10, 10), ("writing", "write_B_s", 1e9, 10),
                                          ("counter", "change_s", 0.01, 1 / (0.01 * (model.CHANGES_A_FRAME + 1)))):
            found = model.simulate(200, KIND, {**FREE, key: slow})
            self.assertLess(found["frames_s"], 1.05 * frames_s, name)
            self.assertGreater(found[name], 0.9, name)
            self.assertTrue(model.bound(found).startswith(name), model.bound(found))

    def test_a_line_for_every_frame_loads_the_log_alone(self):
        costs = {**FREE, "line_s": 0.1}
        self.assertEqual(model.simulate(100, KIND, costs)["log"], 0)
        self.assertGreater(model.simulate(100, KIND, costs, log_every_frame=True)["log"], 0.9)

    def test_fewer_looks_load_the_counter_less(self):
        costs = {**FREE, "change_s": 3e-6}
        often, now = model.simulate(1000, KIND, costs, model.old_pause), model.simulate(1000, KIND, costs)
        self.assertLess(now["looks"], often["looks"] / 2)
        self.assertLess(now["counter"], often["counter"])


if __name__ == "__main__":
    unittest.main()
