"""CASE's figure 5 in small on GPUs: a batch of W1 under sa, schedGPU, Alg. 2 and Alg. 3."""

import functools

import case
from exhibit import Claim, Exhibit, Reproduction, at_least
from gpu.cells import Cell, Plan

MIX = "W1"
POLICIES = ["sa", "mgb-warps", "schedgpu", "mgb-sm"]  # the first is what others are held against
MEMORY, OPTIONS = {"gpu": "16G", "rehearsal": "128M"}, {"gpu": ["--work", "0.5"], "rehearsal": ["--scale", "128", "--work", "0.001"]}
REHEARSED_SLOWDOWN = 0  # as fast as the host can
LIMIT = 60  # seconds of a batch


def settled(machine):
    return [
        f"{MIX} is drawn by `workloads/mixes/mix.py` with `{' '.join(OPTIONS[machine.kind])}`, one seed: 16 real programs, 8 of them large (over 4 GiB), which do "
        f"not check their results. {machine.count} device(s) of {MEMORY[machine.kind]}: a P100's memory. Workers as `--workers auto` has it.",
        "schedGPU's tasks wait for memory alone; so do those of Alg. 3 (mgb-warps), which are placed by warps where there are several devices; "
        "Alg. 2 (mgb-sm) waits for SMs too.",
        "Throughput is jobs over the time of the whole batch; turnaround from the batch's begin to a job's end, the mean of those that did not crash.",
    ]


def batch(queue, policy, node):
    return node.batch(queue, [policy], limit=LIMIT)[0]


def told(result):
    crashes = [f"{job['name']} ({job.get('last_line', '')})" for job in result["jobs"] if job["exit_status"] != 0]
    return (f"{result['throughput_per_minute']:.2f} jobs a minute, turnaround {result['mean_turnaround_s']:.1f} s, "
            f"{result['crashed']} of {len(result['jobs'])} crashed{': ' if crashes else ''}{', '.join(crashes[:3])}")


def over_sa(results, key, upside_down=False):
    """By policy: the number of `key` over sa's, or sa's over it; None where either did not run."""
    def of(policy):
        found = results.get(f"{MIX} {policy}")
        return found[key] if found else None

    alone, made = of("sa"), {}
    for policy in POLICIES[1:]:
        ours = of(policy)
        made[policy] = None if not ours or not alone else alone / ours if upside_down else ours / alone
    return made


def report(machine, results):
    faster, sooner = over_sa(results, "throughput_per_minute"), over_sa(results, "mean_turnaround_s", True)
    rows = {policy: [found[key] for key in ("throughput_per_minute", "makespan_s", "mean_turnaround_s", "crashed")]
            for policy in POLICIES if (found := results.get(f"{MIX} {policy}"))}
    exhibits = [
        Exhibit("Figure 5", f"jobs a second of {MIX}, over SA", "over SA", POLICIES[1:], {MIX: list(faster.values())}, {"mgb-warps": 2.2}),
        Exhibit("Table III", f"turnaround of {MIX} under SA over that under each policy", "times", POLICIES[1:], {MIX: list(sooner.values())},
                {"mgb-warps": 3.7}),
        Exhibit("Batches", "in numbers", "", ["jobs a minute", "makespan, s", "turnaround, s", "crashed"], rows, has_mean=False),
    ]
    # Under sa and the others memory is waited for: no job may crash under any.
    crashed = sum(found["crashed"] for found in results.values())
    claims = [at_least("Alg. 3 (mgb-warps) over SA, jobs a second", 2.2, faster["mgb-warps"]),
              at_least("turnaround under SA over that under Alg. 3", 3.7, sooner["mgb-warps"]),
              Claim("no job crashes", "0", str(crashed), crashed == 0 if results else None)]
    return Reproduction("case-gpu", "CASE: a batch under SA, schedGPU, Alg. 2 and Alg. 3", f"on {machine.name}", claims, exhibits, settled(machine))


def plan(machine, seed):
    mixes = case.mixes
    args = mixes.parse([MIX, "--seed", str(seed), "--static", "--workloads", machine.workloads, *OPTIONS[machine.kind]])
    queue = mixes.as_toml(mixes.draw_jobs(args), args)
    node = {"memory": MEMORY[machine.kind], "slowdown": REHEARSED_SLOWDOWN}
    return Plan([Cell(f"{MIX} {policy}", node, functools.partial(batch, queue, policy), told) for policy in POLICIES],
                functools.partial(report, machine))
