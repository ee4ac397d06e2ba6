"""TReM's figure 2 in small on GPUs: requests beside long kernels, by load and policy."""

import functools
import math

import trem
from exhibit import Claim, Reproduction, at_least, at_most, number
from gpu.cells import Cell, Plan

# In the order in which cells run: what is known least of comes first.
POLICIES = ["priority:hard", "priority:soft", "elastic:hard", "elastic:soft"]


def policies_on(machine):
    """With headroom in place of revocation where programs run together."""
    return POLICIES + ([trem.SHARE] if machine.mps == "on" else [])


def policies_in(results):
    return POLICIES + ([trem.SHARE] if any(name.startswith(f"{trem.SHARE} ") for name in results) else [])


# Seconds: at a low load requests are rare.
WATCHED = {0.25: 4.5, 0.5: 4.0, 1.0: 3.0, 2.0: 2.5}


def scale_of(machine):
    return trem.Scale(machine.count, services=[1, 2, 4, 6], kernel=0.01, batch=[0.2] * machine.count,
                      memory="held" if machine.count == 1 else "released", patience=6, warm_up=0.5, backlog=True,
                      watched={load: machine.seconds(each) for load, each in WATCHED.items()})


def settled(scale):
    where = ("hold their memory, as there is one device only" if scale.memory == "held" else
             "have memory for each request alone, so that each may be placed on any device")
    return [
        f"{len(scale.services)} services for {scale.gpus} device(s), whose requests are of 10 to 60 ms ({', '.join(map(str, scale.services))} kernels of "
        f"10 ms that fill the device), with exponentially distributed pauses; they {where}. A batch program with kernels of "
        f"{scale.batch[0]:g} s for each device, which update 1 MiB in place, one behind the other: batch always has work. So a "
        "load of 1 is here one of requests for half of the devices' time, as in the paper, and of batch for all that it can get. A service sends its "
        "next request behind the last one's end: it does not fall behind without a bound.",
        "Batch kernels are far shorter than the paper's 1 to 60 s. Behind a termination another worker has to start, 0.2 to 0.5 s in time "
        "slices (docs/results/2026-11-25-gpu.md), and the kernel begins anew; on one device, requests at a load of 0.25 come some 260 ms "
        "apart, at 1.0 some 65 ms: a kernel of a second would hardly ever end under priority:hard. One here ends in time for most "
        "requests, which then wait for it.",
        "One device: elastic reserves it as soon as a request came in the last 10 s. Batch then waits whatever the load is, and nothing has to "
        "be taken back: its rows say how requests do without batch.",
        "How long a kernel takes is measured before, by itself.",
        "Watched for " + ", ".join(f"{scale.watched[load]:g} s at load {load:g}" for load in trem.LOADS)
        + f", {scale.warm_up:g} s after batch had come to services of which each had been served (or {scale.patience:g} s old); requests that are open at the "
        "end count nowhere. Few requests: at load 0.25 one of them is some 5 %.",
        "p99 is from each service's start on, so that it may be its first request, for which a worker starts.",
        "Work under way is run again from the last commit ([durability] level = \"full\"), which for a kernel is its beginning.",
    ]


def told(figures):
    return (f"{figures.met:.1f} % of {figures.requests:.0f} requests met, worst p99 {number(figures.p99, 1)} ms; {figures.revocations:.0f} revocations, "
            f"device free after {number(figures.latency, 1)} ms; batch did useful work for {figures.done:.1f} % of the time, "
            f"{figures.again():.1f} % of its work was run again")


def cells_of(machine, scale):
    def measured(load, policy, node):
        programs = scale.programs(functools.partial(machine.episodes, node), load)
        return trem.watch(node, programs, scale, load, policy in trem.HARD)

    # Those of one policy are neighbours, which saves starting a node each.
    keys = {policy: {"dispatch": policy, "level": "full", "kept_workers": 2 if machine.count == 1 else 2 * len(scale.services)} for policy in policies_on(machine)}
    return [Cell(f"{policy} load {load:g}", keys[policy], functools.partial(measured, load, policy), told)
            for policy in policies_on(machine) for load in trem.LOADS]


def exhibit(results, name, title, unit, value, policies=None, **keys):
    """As trem.exhibit, with a dash where a cell did not run."""
    made = {load: {policy: results.get(f"{policy} load {load:g}") for policy in policies_in(results)} for load in trem.LOADS}
    return trem.exhibit(made, name, title, unit, lambda each: None if each is None else value(each), policies, **keys)


def again_of(results, policy):
    """Of all loads that ran together, in %; None where nothing did."""
    ran = [each for name, each in results.items() if name.startswith(f"{policy} ")]
    busy = math.fsum(each.busy for each in ran)
    return 100 * math.fsum(each.lost for each in ran) / busy if busy else None


FEW = "the number of requests says how much one of them is"
RESTART = "expected before it ran: on one device a batch kernel and the start of another worker hardly fit between two requests"


def claims_of(results):
    def met(policy, load):
        found = results.get(f"{policy} load {load:g}")
        return None if found is None else found.met

    at_low = [each for policy in policies_in(results) if (each := met(policy, 0.25)) is not None]
    claims = [at_least("load 0.25: requests met, every policy that ran, %", 99, min(at_low, default=None), FEW)]
    for policy in trem.HARD:
        claims += [at_least(f"load 1: requests met by {policy}, %", 98, met(policy, 1.0), FEW),
                   at_least(f"load 2: requests met by {policy}, %", 96, met(policy, 2.0), trem.CLOSED)]
        claims.append(at_most(f"work run again under {policy}, all loads together, %", 3, again_of(results, policy), RESTART))
        latencies = [each.latency for name, each in results.items() if name.startswith(f"{policy} ") and each.latency is not None]
        claims.append(at_most(f"{policy}: from the decision to a free device, 99 of 100, ms", 22, max(latencies, default=None), digits=1))
    hard, soft = met("priority:hard", 1.0), met("priority:soft", 1.0)
    claims.append(Claim("load 1: requests met by priority:hard and by priority:soft, %", "more with hard revocation",
                        f"{number(hard)} and {number(soft)}", None if hard is None or soft is None else hard >= soft))
    return claims


def report(machine, scale, results):
    exhibits = [
        exhibit(results, "Figure 2", "requests within 200 ms by load and policy", "% of requests", lambda each: each.met,
                notes=["The paper: 99 at low load; at 1, 98 with revocation; at 2, 96."]),
        exhibit(results, "Number of requests", "that were looked at", "requests", lambda each: each.requests, digits=0),
        exhibit(results, "99 of 100 requests", "of the worst service, its first request with them", "ms", lambda each: each.p99, digits=1),
        exhibit(results, "Work run again", "from the kernels' beginnings", "% of batch work", lambda each: each.again(), ["priority:hard", "elastic:hard"]),
        exhibit(results, "Batch work", "what was done, without what was run again", "% of the devices' time", lambda each: each.done, digits=1),
        exhibit(results, "Revocations", "until the device is free, 99 of 100 of the worst batch program", "ms", lambda each: each.latency, digits=1,
                notes=["A dash: there was none."]),
        exhibit(results, "Number of revocations", "while it was watched", "revocations", lambda each: each.revocations, digits=0),
    ]
    return Reproduction("trem-gpu", "TReM: requests that end in time beside long kernels", f"on {machine.name}", claims_of(results), exhibits,
                        settled(scale))


def plan(machine, seed):
    del seed  # what programs draw is the same each time, what they meet is not
    scale = scale_of(machine)
    return Plan(cells_of(machine, scale), functools.partial(report, machine, scale))
