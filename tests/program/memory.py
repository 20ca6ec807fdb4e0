#!/usr/bin/env python3
"""Memory: planned into what there is, refused with numbers before anything is made, the same bytes however it is divided."""
import json
import os
import resource
import subprocess
import sys

from program import JOB, check, fail, main, recording, same, says

GiB = 2**30
SHAPE = (512, 512, 256, 256)


def large(folder):
    """A recording of 32 GiB, all holes."""
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {SHAPE}, }}".ljust(117) + "\n"
    with open(folder.path / "large.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode())
        file.truncate(128 + 2 * 512 * 512 * 256 * 256)
    optics = {"voltage_V": 200000, "semiangle_mrad": 20, "scan_step_A": [0.3, 0.3], "detector_pitch_mrad": [0.22, 0.22], "detector_center_px": [127.5, 127.5]}
    folder.save_job({"task": "reconstruct", "series": {"files": ["large.npy"]}, "optics": optics, "output": {"file": "out.h5"}, "compute": {"backend": "cpu"},
                     "methods": {"ssb": {"estimator": "wave"}, "phase": {"strength": [0.1]}, "complex": {"strength": [0.1]}}})


def call(folder, command, *extra, status, ranks=None, address_space=None, **environment):
    """As folder.call, with an address space of so many bytes and without what would make this machine a batch system's."""
    launcher = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks else []
    limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))) if address_space else None
    variables = {k: v for k, v in os.environ.items() if not k.startswith("SLURM_")}
    done = subprocess.run([*launcher, folder.program, command, "job.json", *extra], cwd=folder.path, capture_output=True, text=True, timeout=120,
                          env={**variables, **environment}, preexec_fn=limit, check=False)
    if done.returncode != status:
        fail(f"{command} {extra}: exit status {done.returncode}, expected {status}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def bare_path(folder, *commands):
    """A PATH that holds nothing but these (and what mpirun needs is not asked for)."""
    path = folder.path / "bin"
    path.mkdir(exist_ok=True)
    for name in commands:
        (path / name).write_text("#!/bin/sh\n")
        (path / name).chmod(0o755)
    return str(path)


def a_large_job_is_planned_into_what_there_is(folder):
    large(folder)
    report = json.loads(call(folder, "check", "--json", status=0, PATH=bare_path(folder, "sbatch")))
    memory, machine = report["memory_per_rank"], report["this_machine"]
    check(memory["frame_bytes"] > 12 * GiB, f"one frame takes {memory['frame_bytes']} bytes")
    check(memory["least_bytes"] > memory["system_bytes"] + memory["frame_bytes"], "one frame needs more than itself")
    check(memory["host_bytes"] >= memory["peak_bytes"] + memory["ring_bytes"] + memory["beside_bytes"], "what stands beside counts")
    check(not machine["job_fits"] or memory["host_bytes"] <= machine["free_bytes"], f"{memory['host_bytes']} bytes planned into {machine['free_bytes']}")
    check(memory["unbounded_host_bytes"] > 8 * memory["frame_bytes"], "unbounded, it would take eight frames at a time")


def a_large_job_is_refused_where_it_does_not_fit(folder):
    large(folder)
    numbers = ("does not fit into memory", "each rank needs at least", "one frame 12.", "ulimit -v", "on this machine", "left for 1 rank")
    says(call(folder, "check", status=2, address_space=8 * GiB, PATH=bare_path(folder)), *numbers)
    says(call(folder, "run", status=2, address_space=8 * GiB), *numbers)
    for ranks in (1, 3):
        says(call(folder, "run", status=2, ranks=ranks, address_space=8 * GiB), *numbers)
    left = sorted(path.name for path in folder.path.iterdir())
    check(left == ["bin", "job.json", "large.npy"], f"something was made: {left}")


def ranks_share_the_node(folder):
    """Memory that does for one rank is refused to three."""
    folder.save_job()
    for frame in range(3):
        folder.save(f"frame_{frame}.npy", recording(frame + 1))
    slurm = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "150"}
    call(folder, "run", status=0, **slurm)
    call(folder, "run", "--overwrite", status=0, ranks=1, **slurm)
    text = call(folder, "run", "--overwrite", status=2, ranks=3, **slurm)
    says(text, "SLURM_MEM_PER_NODE=150", "150 MiB left for 3 ranks", "fewer ranks on a node", "more memory from Slurm (--mem)")
    check((folder.path / "out.h5").exists(), "what stood there is gone")
    per_cpu = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_CPU": "50", "SLURM_CPUS_ON_NODE": "3"}
    says(call(folder, "run", "--overwrite", status=2, ranks=3, **per_cpu), "SLURM_MEM_PER_CPU=50 on 3 CPUs")


def a_login_node_only_warns(folder):
    large(folder)
    elsewhere = bare_path(folder, "sbatch")
    text = call(folder, "check", status=0, address_space=8 * GiB, PATH=elsewhere)
    says(text, "warning", "on this machine, from which the job may be sent elsewhere", "does not fit into memory")
    report = json.loads(call(folder, "check", "--json", status=0, address_space=8 * GiB, PATH=elsewhere))
    check(not report["this_machine"]["job_fits"] and report["this_machine"]["may_run_elsewhere"], f"{report['this_machine']}")
    inside = {"PATH": elsewhere, "SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "4096"}
    says(call(folder, "check", status=2, **inside), "SLURM_MEM_PER_NODE=4096", "--mem")


def the_jobs_own_budget_is_told_apart(folder):
    large(folder)
    for path in (bare_path(folder), bare_path(folder, "sbatch")):
        text = call(folder, "check", "--set", "compute.memory_budget_GiB=5", status=2, PATH=path)
        says(text, "the memory budget is 5 GiB (/compute/memory_budget_GiB)", "What helps: a larger budget")


def other_tasks_are_bounded_too(folder):
    folder.save("frame_0.npy", recording(1))
    slurm = {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "1"}
    folder.save_job({"task": "histogram", "series": {"files": ["frame_0.npy"], "scan_shape": [6, 7]}, "histogram": {"bins": 100000, "range": [0, 100000]},
                     "output": {"file": "out.h5"}, "compute": {"backend": "cpu"}})
    says(call(folder, "check", status=2, **slurm), "a single row of 18 pixels", "what this machine leaves for them")
    for ranks in (None, 3):
        says(call(folder, "run", status=2, ranks=ranks, **slurm), "SLURM_MEM_PER_NODE=1", "what this machine leaves for them")
    check(not (folder.path / "out.h5").exists(), "an output was made")


def however_memory_is_divided_the_bytes_are_the_same(folder):
    folder.save_job({**JOB, "weights": "uniform"})
    for frame in range(5):
        folder.save(f"frame_{frame}.npy", recording(frame + 1))
    roomy = folder.run()
    for budget in ("0.003", "0.005", "0.02"):
        same(folder.run(f"compute.memory_budget_GiB={budget}", output="tight.h5"), roomy, range(5), f"a budget of {budget} GiB")


if __name__ == "__main__":
    sys.exit(main([a_large_job_is_planned_into_what_there_is, a_large_job_is_refused_where_it_does_not_fit, ranks_share_the_node, a_login_node_only_warns,
                   the_jobs_own_budget_is_told_apart, other_tasks_are_bounded_too, however_memory_is_divided_the_bytes_are_the_same]))
