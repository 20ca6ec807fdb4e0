"""Holds scripts/include_graph.py against made-up trees: what it must find, and what it must let pass."""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "include_graph.py"
spec = importlib.util.spec_from_file_location("include_graph", SCRIPT)
include_graph = importlib.util.module_from_spec(spec)
spec.loader.exec_module(include_graph)


def faults_of(files):
    """What the script says of a tree {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return list(include_graph.faults(include_graph.Tree(pathlib.Path(folder))))


class Folders(unittest.TestCase):
    def test_downwards_passes(self):
        self.assertEqual(faults_of({"src/core/error.h": "", "src/hdf5/lock.c": '#include "core/error.h"\n', "src/cli/run.c": '#include "hdf5/lock.h"\n',
                                    "src/hdf5/lock.h": "", "src/main.c": '#include "hdf5/lock.h"\n'}), [])

    def test_upwards_is_found_with_its_line(self):
        found = faults_of({"src/core/error.c": '\n#include "hdf5/lock.h"\n', "src/hdf5/lock.h": ""})
        self.assertEqual(found, ["src/core/error.c:2 includes src/hdf5/lock.h: core knows hdf5, which stands above it"])

    def test_what_stands_below_but_is_not_allowed_is_found(self):
        found = faults_of({"src/optics/plan.c": '#include "hdf5/lock.h"\n', "src/hdf5/lock.h": ""})
        self.assertEqual(len(found), 1)
        self.assertIn("optics knows hdf5, which it must not know", found[0])

    def test_kernels_are_a_folder_too(self):
        self.assertIn("kernels knows cluster", faults_of({"kernels/cuda/a.cu": '#include "cluster/queue.h"\n', "src/cluster/queue.h": ""})[0])

    def test_a_call_without_an_include_is_found(self):
        found = faults_of({"src/core/a.c": "int ps_up(void);\nint ps_a(void) { return ps_up(); }\n", "src/job/b.c": "int ps_up(void) { return 1; }\n"})
        self.assertEqual(found, ["core/a uses ps_up of job/b: core knows job, which stands above it"])

    def test_an_unknown_folder_is_found(self):
        self.assertEqual(faults_of({"src/misc/a.c": ""}), ["misc: a folder that is not in the list"])


class Includes(unittest.TestCase):
    def test_headers_in_a_circle_are_found(self):
        found = faults_of({"src/core/a.h": '#include "core/b.h"\n', "src/core/b.h": '#include "core/c.h"\n', "src/core/c.h": '#include "core/a.h"\n'})
        self.assertEqual(found, ["files include each other in a circle: src/core/a.h, src/core/b.h, src/core/c.h"])

    def test_a_file_that_includes_itself_is_found(self):
        self.assertEqual(len(faults_of({"src/core/a.h": '#include "core/a.h"\n'})), 1)

    def test_includes_beside_the_file_count(self):
        self.assertEqual(len(faults_of({"src/core/a.h": '#include "b.h"\n', "src/core/b.h": '#  include "a.h"\n'})), 1)

    def test_an_internal_header_is_no_circle(self):
        self.assertEqual(faults_of({
            "src/core/a.h": "int ps_a(void);\n", "src/core/a_internal.h": '#include "core/a.h"\nint ps_a_part(void);\n',
            "src/core/a.c": '#include "core/a.h"\n#include "core/a_internal.h"\nint ps_a(void) { return ps_a_part(); }\n',
            "src/core/a_part.c": '#include "core/a_internal.h"\nint ps_a_part(void) { return 1; }\n'}), [])


class Use(unittest.TestCase):
    def test_sources_that_need_each_other_are_found_behind_an_internal_header(self):
        found = faults_of({
            "src/core/a_internal.h": "int ps_a_low(void);\nint ps_a_part(void);\n",
            "src/core/a.c": '#include "core/a_internal.h"\nint ps_a(void) { return ps_a_part(); }\nint ps_a_low(void) { return 1; }\n',
            "src/core/a_part.c": '#include "core/a_internal.h"\nint ps_a_part(void) { return ps_a_low(); }\n'})
        self.assertEqual(found, ["units need each other's functions:\n    core/a uses ps_a_part of core/a_part\n"
                                 "    core/a_part uses ps_a_low of core/a"])

    def test_three_units_in_a_circle_are_found(self):
        def unit(here, there):
            return f"int ps_{there}(void);\nint ps_{here}(void) {{ return ps_{there}(); }}\n"
        self.assertEqual(len(faults_of({"src/core/a.c": unit("a", "b"), "src/core/b.c": unit("b", "c"), "src/core/c.c": unit("c", "a")})), 1)

    def test_tables_are_use(self):
        self.assertEqual(len(faults_of({
            "src/core/a.c": "const ps_ops ps_table = {\n    .run = ps_run,\n};\nint ps_low(void) { return 1; }\n",
            "src/core/b.c": "int ps_run(void) { return ps_low(); }\n"})), 1)

    def test_a_table_is_defined_where_it_stands(self):
        self.assertEqual(len(faults_of({"src/core/a.c": "const int ps_sizes[] = {1, 2};\nint ps_a(void) { return ps_b(); }\n",
                                        "src/core/b.c": "int ps_b(void) { return ps_sizes[0]; }\n"})), 1)

    def test_macros_are_use_where_they_are_used(self):
        files = {"src/core/try.h": "#define PS_TRY_LOW() \\\n    ps_low()\n",
                 "src/core/low.c": "int ps_low(void) { return ps_high(); }\n",
                 "src/core/high.c": "int ps_high(void) { return PS_TRY_LOW(); }\n"}
        self.assertEqual(len(faults_of(files)), 1)
        files["src/core/high.c"] = "int ps_high(void) { return 1; }\n"
        self.assertEqual(faults_of(files), [])

    def test_functions_in_headers_count(self):
        self.assertEqual(len(faults_of({
            "src/core/a.h": "static inline int ps_a_small(void) { return 1; }\n", "src/core/a.c": "int ps_a(void) { return ps_b(); }\n",
            "src/core/b.c": "int ps_b(void) { return ps_a_small(); }\n"})), 1)

    def test_declarations_comments_texts_and_own_statics_are_no_use(self):
        self.assertEqual(faults_of({
            "src/core/a.c": 'extern "C" {\nint ps_b(void);\n/* ps_b() */\nint ps_a(void) { return 0; /* ps_b */ }\n}\n',
            "src/core/b.c": 'static int ps_c(void) { return 0; }\nint ps_b(void) { puts("ps_d()"); return ps_a() + ps_c(); }\n',
            "src/core/c.c": "static int ps_c(void) { return 1; }\nint ps_d(void) { return ps_c() + ps_b(); }\n"}), [])


class Picture(unittest.TestCase):
    def test_arrows_are_what_does_not_follow_from_others(self):
        edges = include_graph.collections.Counter({("cli", "tasks"): 1, ("tasks", "core"): 2, ("cli", "core"): 3, ("job", "core"): 1})
        self.assertEqual(include_graph.needed_edges(edges), [("cli", "tasks"), ("tasks", "core"), ("job", "core")])

    def test_lanes_do_not_overlap(self):
        rows = {name: row for row, name in enumerate(reversed(include_graph.LEVEL))}
        edges = [(a, b) for a in rows for b in rows if rows[a] < rows[b]]
        lane, n = include_graph.lanes(edges, rows)
        self.assertEqual(len(lane), len(edges))
        for i, one in enumerate(edges):
            for other in edges[:i]:
                if lane[one] == lane[other]:
                    self.assertTrue(rows[one[1]] <= rows[other[0]] or rows[other[1]] <= rows[one[0]], (one, other))
        self.assertLessEqual(n, len(edges))


class Program(unittest.TestCase):
    def run_script(self, *arguments):
        return subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, check=False)

    def test_exit_status_and_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            root, picture = pathlib.Path(folder), pathlib.Path(folder, "graph.svg")
            self.assertEqual(self.run_script("--root", folder).returncode, 2)
            (root / "src/job").mkdir(parents=True)
            (root / "src/core").mkdir()
            (root / "src/core/error.h").write_text("")
            (root / "src/job/job.c").write_text('#include "core/error.h"\n')
            self.assertEqual(self.run_script("--root", folder).returncode, 0)
            self.assertEqual(self.run_script("--root", folder, "--svg-check", str(picture)).returncode, 1)
            self.assertEqual(self.run_script("--root", folder, "--svg", str(picture)).returncode, 0)
            self.assertEqual(self.run_script("--root", folder, "--svg-check", str(picture)).returncode, 0)
            (root / "src/job/job.c").write_text("")
            self.assertEqual(self.run_script("--root", folder, "--svg-check", str(picture)).returncode, 1)
            (root / "src/core/error.h").write_text('#include "job/job.h"\n')
            (root / "src/job/job.h").write_text("")
            broken = self.run_script("--root", folder)
            self.assertEqual(broken.returncode, 1)
            self.assertIn("src/core/error.h:1", broken.stdout)


if __name__ == "__main__":
    unittest.main()
