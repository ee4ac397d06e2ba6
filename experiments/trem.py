"""TReM (papers/trem.txt), figure 2: requests within their SLO beside batch kernels, with and without revocation."""

import dataclasses
import os
import re
import time

from exhibit import Claim, Exhibit, Reproduction, at_least, mean, number
from simulation import Failed, Scenario, seconds

GPUS = 4
LOADS = [0.25, 0.5, 1.0, 2.0]
HORIZON = 600  # seconds
SLO = 0.2
# Requests of 5 to 60 ms: eleven applications, the requests of each within 5 ms.
REQUESTS = [(5 * at / 1000, (5 * at + 5) / 1000) for at in range(1, 12)]
BATCH = (1.0, 60.0)
COSTS = {"terminate": "15ms", "resume": "30ms"}

FIFO = "fifo"
OFF, SOFT, HARD = ["priority:off", "elastic:off"], ["priority:soft", "elastic:soft"], ["priority:hard", "elastic:hard"]
SHARE = "priority:share"  # ours: headroom in place of revocation
WITH_PROGRAMS = [FIFO, *OFF, *SOFT, *HARD]
POLICIES = [*WITH_PROGRAMS, SHARE]
SETTLED = [
    "The load: Poisson arrivals, half of it requests of 5 to 60 ms, half batch kernels of 1 to 60 s, each drawn evenly (the paper: "
    "\"datacenter inspired workloads\", kernels \"up to several minutes\").",
    "Requests are of eleven applications, those of each within 5 ms of each other, so that what is known of an application's last requests "
    "says how long its next one takes. Where all are of one application the policies know the mean only: see the last table.",
    "At 2.0 requests alone ask for all four GPUs all the time: even without batch the line of those that wait has no bound.",
    "One task at a time on a GPU; requests and batch tasks are placed when a GPU is free, and may be placed on each.",
    "A request that cannot end in time any more counts as missed and is still run, behind those that can.",
    "A terminated worker is gone after 15 ms (measured on an H100: 15 ms, at worst 25), and another goes on 30 ms after the GPU is lent anew. "
    "Kernels run again from their beginnings, as TReM's do; with epochs, from the last one.",
    "Work run again: busy time since the last commit at each termination, over all time that batch kernels had on GPUs.",
    "`priority:share` is heddle's own: nothing is taken back, batch has 80 % of each GPU's SMs all the time, and requests run beside it. "
    "Requests and batch fill a GPU each, so a request beside batch has half of it.",
    f"{HORIZON} s, from an idle node on; the mean of three seeds. What is open beyond its SLO at the end is missed.",
]


@dataclasses.dataclass
class Figures:
    """What came of a load under a policy."""

    met: float  # % of requests
    lost: float  # seconds of batch kernels, run again
    busy: float  # seconds of batch kernels, with those
    done: float  # % of the batch work that was asked for
    latency: float | None  # of revocations, 99 of 100, in ms
    revocations: float
    requests: float = 0
    p99: float | None = None  # ms of requests, of the worst service, from its start on

    def again(self):
        return 100 * self.lost / self.busy if self.busy > 0 else 0.0


def stream(name, shortest, longest, share, **keys):
    """Jobs of one burst that ask for `share` of a GPU's time, all together."""
    every = (shortest + longest) / 2 / share
    return {
        "name": name, "memory": "100M", "blocks": 512, "busy": seconds(shortest), "busy_most": seconds(longest),
        "count": max(1, round(HORIZON / every)), "every": seconds(every), "arrivals": "random", **keys,
    }


def jobs_of(load, applications, batch_keys):
    half = load * GPUS / 2
    asked = sum(shortest + longest for shortest, longest in applications)
    served = {"class": "user-facing", "slo": seconds(SLO)}
    jobs = [stream(f"request {at + 1}", *each, half * sum(each) / asked, **served) for at, each in enumerate(applications)]
    return [*jobs, stream("batch", *BATCH, half, **batch_keys)]


def figures_of(run, load):
    requests, batch = run.answer["requests"], run.answer["batch"]
    latency = (batch["latency"] or {}).get("p99")
    return Figures(100 * requests["share_met"], batch["lost"], batch["busy"],
                   100 * (batch["busy"] - batch["lost"]) / (load * GPUS / 2 * HORIZON),
                   None if latency is None else 1000 * latency, batch["revocations"])


def mean_of(figures):
    values = {field.name: mean([getattr(each, field.name) for each in figures]) for field in dataclasses.fields(Figures)}
    return Figures(**values)


def measure(simulator, seeds, progress, policies, applications=None, batch_keys=None, loads=None, **keys):
    """For each load, each policy's figures, over all seeds."""
    made = {}
    for load in loads or LOADS:
        found = {policy: [] for policy in policies}
        for seed in seeds:
            progress(f"load {load}, seed {seed}")
            root = {"horizon": f"{HORIZON}s", "seed": seed, **COSTS, **keys}
            scenario = Scenario([{"preset": "P100", "count": GPUS}], jobs_of(load, applications or REQUESTS, batch_keys or {}), root)
            runs = simulator.run(scenario, [("mgb-warps", policy) for policy in policies], lists_jobs=False)
            for policy, run in zip(policies, runs):
                found[policy].append(figures_of(run, load))
        made[load] = {policy: mean_of(each) for policy, each in found.items()}
    return made


def exhibit(made, name, title, unit, value, policies=None, digits=2, notes=()):
    policies = policies or list(next(iter(made.values())))
    rows = {f"load {load:g}": [value(each[policy]) for policy in policies] for load, each in made.items()}
    return Exhibit(name, title, unit, policies, rows, digits=digits, has_mean=False, notes=list(notes))


def again_at_all_loads(made, policy):
    lost, busy = (sum(getattr(each[policy], name) for each in made.values()) for name in ("lost", "busy"))
    return 100 * lost / busy if busy else 0.0


# Why what does not hold does not.
NO_REVOCATION_NEEDED = "without revocation requests wait for kernels of up to a minute wherever none of the GPUs is theirs"
OVERLOAD = "requests alone ask for all GPUs all the time at 2.0: whoever serves them, some must be late"
NAIVE = ("priority lends a GPU to batch as soon as no request needs it, and takes it back for the next one that would not end in time on the "
         "others: what batch did in between is lost")
FEW = "elastic revokes a device some ten times in a pass: one revocation near the end of a kernel of 4 s is several percent"
NOTHING_DONE = "at 2.0 all GPUs are the requests', and what batch had begun before is lost"


def claims_of(made, epochs):
    def met(load, policy):
        return made[load][policy].met

    low = min(met(0.25, policy) for policy in OFF + SOFT + HARD)
    claims = [
        at_least("load 0.25: requests met, every policy, %", 99, low),
        at_least("load 0.5: requests met, with hard revocation, % (our goal)", 99, min(met(0.5, policy) for policy in HARD)),
        at_least("load 1: requests met by priority without revocation, %", 90, met(1.0, "priority:off"), NO_REVOCATION_NEEDED),
        at_least("load 1: requests met by elastic without revocation, %", 90, met(1.0, "elastic:off"), NO_REVOCATION_NEEDED),
    ]
    for policy in HARD:
        claims.append(at_least(f"load 1: requests met by {policy}, %", 98, met(1.0, policy)))
        claims.append(Claim(f"load 1: requests met by {policy}, %", "- (our goal: 99.5)", number(met(1.0, policy)), met(1.0, policy) >= 99.5))
        claims.append(at_least(f"load 2: requests met by {policy}, %", 96, met(2.0, policy), OVERLOAD))
        claims.append(Claim(f"load 2: requests met by {policy}, %", "- (our goal: 98)", number(met(2.0, policy)), met(2.0, policy) >= 98, OVERLOAD))
    for policy, why in (("elastic:hard", NOTHING_DONE), ("priority:hard", NAIVE)):
        again = again_at_all_loads(made, policy)
        claims.append(Claim(f"work run again under {policy}, all loads together, %", "3", number(again), again <= 3, why))
        claims.append(Claim(f"work run again under {policy}, all loads together, %", "- (our goal: at most 2)", number(again), again <= 2, why))
    for policy in HARD:
        again = again_at_all_loads(epochs, policy)
        claims.append(Claim(f"work run again with kernels of 50 ms and epochs of 500 ms, {policy}, %", "- (our goal: at most 2)", number(again),
                            again <= 2, NAIVE))
    return claims


def simulate(simulator, seed, progress):
    seeds = [seed, seed + 1, seed + 2]
    made = measure(simulator, seeds, progress, POLICIES)
    epochs = measure(simulator, seeds, progress, SOFT + HARD, batch_keys={"kernel": "50ms"}, epoch="500ms")
    unknown = measure(simulator, seeds, progress, OFF + HARD, applications=[(0.005, 0.06)], loads=[1.0, 2.0])
    exhibits = [
        exhibit(made, "Figure 2", "requests within 200 ms by load and policy", "% of requests", lambda each: each.met,
                notes=["The paper: 99 at low load; at 1, 90 without revocation and 98 with it; at 2, 96."]),
        exhibit(made, "Work run again", "kernels of 1 to 60 s, from their beginnings", "% of batch work", Figures.again, HARD,
                notes=["The paper: 3. At 2.0 it is a part of nearly nothing: see the next table."]),
        exhibit(made, "Batch work", "what of it was done, without what was run again", "% of what was asked for", lambda each: each.done, digits=1,
                notes=["It asks for half of each load; GPUs are full from 1 on. Of priority:share it is the time on a GPU, beside requests or on a part of it."]),
        exhibit(made, "Revocations", "from the withdrawal until the device is free, 99 of 100", "ms", lambda each: each.latency, SOFT + HARD, digits=1,
                notes=["Soft ones wait for a kernel of up to a minute; so do hard ones where requests end in time on other GPUs. A termination is "
                       "given here (15 ms): what it takes is measured with programs (--software, --gpu). A dash: there was none in any run."]),
        exhibit(made, "Number of revocations", f"in {HORIZON} s, the mean of the runs", "revocations", lambda each: each.revocations, SOFT + HARD,
                digits=0),
        exhibit(epochs, "Requests, short kernels", "batch of kernels of 50 ms, with epochs of 500 ms", "% of requests", lambda each: each.met),
        exhibit(epochs, "Work run again, short kernels", "the same", "% of batch work", Figures.again),
        exhibit(epochs, "Batch work, short kernels", "the same: what of it was done", "% of what was asked for", lambda each: each.done, digits=1),
        exhibit(unknown, "One application", "requests of 5 to 60 ms of which only the mean is known", "% of requests", lambda each: each.met),
    ]
    return Reproduction("trem", "TReM: requests that end in time beside long kernels", "simulated", claims_of(made, epochs), exhibits, SETTLED)


# With programs that run: `workloads/episodes`, kernels that update their memory in place.
@dataclasses.dataclass
class Scale:
    """What programs make up the loads on some devices, and how long they are watched."""

    gpus: int
    services: list[int]  # kernels in a request of each
    kernel: float  # seconds of one
    batch: list[float]  # of a kernel of each batch program
    memory: str  # of a service between its requests: "held", or "released", so that each may be placed on any device
    patience: float  # seconds at most, until each service was served once and batch starts
    warm_up: float  # seconds, from then on
    watched: dict[float, float]  # seconds, by load
    backlog: bool = False  # whether batch always has work; else it is half of the load, as requests are

    def asked(self, load):
        """Seconds of batch work while it is watched; all of the devices' time where batch always has work."""
        return (self.gpus if self.backlog else load * self.gpus / 2) * self.watched[load]

    def programs(self, episodes, load):
        """(options, command) of each, services first. `episodes(kernel, launches, pause, *more)` is a command."""
        half, made = load * self.gpus / 2, []
        for at, launches in enumerate(self.services):
            pause = launches * self.kernel * (len(self.services) / half - 1)
            # Each is an application of its own, as TReM's are: what the others' requests take says nothing of its own.
            made.append((["--class", "user-facing", "--slo", seconds(SLO), "--app", f"service-{at + 1}"],
                         episodes(self.kernel, launches, pause, "--gaps", "random", "--memory", self.memory, "--seed", str(at + 1))))
        for at, kernel in enumerate(self.batch):
            pause = 0.0 if self.backlog else kernel * (len(self.batch) / half - 1)
            made.append((["--class", "batch"], episodes(kernel, 1, pause, "--gaps", "random", "--seed", str(at + 101))))
        return made


# Software devices are slowed so far that the host has little to compute for them, with kernels of one block; a burst begins
# with the latency of a launch, 5 us of a P100.
SLOWDOWN = 1000
SECONDS_A_STEP = 24e-9 * SLOWDOWN  # of a kernel
SOFTWARE = Scale(GPUS, services=[1, 2, 3, 4, 5, 6, 2, 4], kernel=0.01, batch=[1.0, 2.0, 2.0, 4.0], memory="released", patience=5, warm_up=4,
                 watched={load: 26 for load in LOADS})

SETTLED_SOFTWARE = [
    "Eight services whose requests are of 10 to 60 ms (1 to 6 kernels of 10 ms), with exponentially distributed pauses and memory for each "
    "request alone, so that each may be placed on any device; four batch programs with kernels of 1 to 4 s, without memory of anybody "
    "else's. Each half of the load. A service sends its next request behind the last one's end: it does not fall behind without a bound.",
    f"Devices are slowed {SLOWDOWN} times; the latency of a launch, 5 ms then, is part of a request.",
    f"Watched for {SOFTWARE.watched[1.0]} s, {SOFTWARE.warm_up} s after the start of batch; requests that are open at its end count nowhere.",
    "Work under way is run again from the last commit ([durability] level = \"full\"), which for a kernel is its beginning.",
]
SLOW_HOST = "programs, workers and the devices' own arithmetic share this host's processors: what is late may be late by the host"
CLOSED = "a service whose request is late sends fewer, so that it is the policy that is watched and not a line without a bound"


def software_episodes(workloads):
    def command(kernel, launches, pause, *more):
        steps = round(kernel / SECONDS_A_STEP)
        return [os.path.join(workloads, "episodes"), "--size", "256", "--steps", str(steps), "--launches", str(launches),
                "--gap", str(round(1000 * pause)), "--iterations", "1000000", "--check", "none", *more]
    return command


def counted(jobs, names, kind, key):
    return sum(jobs[name].get(kind, {}).get(key, 0) for name in names if name in jobs)


def most(jobs, names, kind, key):
    """In ms, of those that have it; None of none."""
    return max((each / 1e6 for name in names if (each := jobs[name].get(kind, {}).get(key))), default=None)


def wait_until_served(node, services, patience):
    """Each once; or so long, as some policies let services wait, and some services seldom have requests."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        jobs = node.jobs()
        if all(counted(jobs, [name], "requests", "count") for name in services):
            return
        time.sleep(0.1)


def looks_of(node, names, scale, load):
    """What heddled says of each job before and after the programs were watched."""
    time.sleep(scale.warm_up)
    before = node.jobs()
    time.sleep(scale.watched[load])
    after = node.jobs()
    if any(name not in after for name in names):
        raise Failed(f"some of the programs have ended: {', '.join(name for name in names if name not in after)}{node.ended()}")
    return before, after


def watch(node, programs, scale, load, is_hard):
    """Services are there before batch comes."""
    served = len(scale.services)
    with node.running(programs[:served]) as services:
        wait_until_served(node, services, scale.patience)
        with node.running(programs[served:]) as batch:
            before, after = looks_of(node, services + batch, scale, load)

    def between(of, kind, key):
        return counted(after, of, kind, key) - counted(before, of, kind, key)

    met, missed = (between(services, "requests", key) for key in ("met", "missed"))
    busy, lost = between(batch, "usage", "busy_ns") / 1e9, between(batch, "revocations", "lost_ns") / 1e9
    # What a worker was busy with when it was terminated is in no usage.
    return Figures(100 * met / (met + missed) if met + missed else 0.0, lost, busy + lost, 100 * busy / scale.asked(load),
                   most(after, batch, "revocations", "terminated_p99_ns" if is_hard else "p99_ns"), between(batch, "revocations", "count"),
                   met + missed, most(after, services, "requests", "p99_ns"))


def on_software(node_of, workloads, seed, progress, only=""):
    """Figure 2 in small, with programs that run. `node_of(preset, count, ...)` is a Node of software devices; `only`: the policies
    in whose names that regex is found.
    """
    del seed  # what programs draw is the same each time, what they meet is not
    before = os.getloadavg()[0]
    chosen = [policy for policy in WITH_PROGRAMS if re.search(only, policy)]
    if not chosen:
        raise Failed(f"no policy has '{only}' in its name; there are {', '.join(WITH_PROGRAMS)}")
    soft_and_hard, hard = ([policy for policy in each if policy in chosen] for each in (SOFT + HARD, HARD))
    made = {}
    for load in LOADS:
        made[load] = {}
        for policy in chosen:
            progress(f"load {load} under {policy}")
            with node_of("P100", GPUS, dispatch=policy, slowdown=SLOWDOWN, level="full") as node:
                made[load][policy] = watch(node, SOFTWARE.programs(software_episodes(workloads), load), SOFTWARE, load, policy in HARD)
    figure = exhibit(made, "Figure 2", "requests within 200 ms by load and policy", "% of requests", lambda each: each.met,
                     notes=["The paper: 99 at low load; at 1, 90 without revocation and 98 with it; at 2, 96.",
                            f"The host has {os.cpu_count()} processors and had a load of {before:.1f} before, {os.getloadavg()[0]:.1f} at the end."])
    exhibits = [figure,
                exhibit(made, "Batch work", "what of it was done, without what was run again", "% of what was asked for", lambda each: each.done, digits=1)]
    if hard:
        exhibits += [exhibit(made, "Work run again", "kernels of 1 to 4 s, from their beginnings", "% of batch work", Figures.again, hard),
                     exhibit(made, "Work run again, in seconds", "of all batch programs together", "s", lambda each: each.lost, hard),
                     exhibit(made, "Time that devices were busy with batch", "with what was run again", "s", lambda each: each.busy, hard)]
    claims = []
    if soft_and_hard:
        exhibits += [exhibit(made, "Revocations", "until the device is free, 99 of 100 of the worst batch program", "ms", lambda each: each.latency,
                             soft_and_hard, digits=1),
                     exhibit(made, "Number of revocations", f"in {SOFTWARE.watched[1.0]} s", "revocations", lambda each: each.revocations,
                             soft_and_hard, digits=0)]
        claims.append(at_least("load 0.25: requests met, every policy with revocation, %", 99,
                               min(made[0.25][policy].met for policy in soft_and_hard), SLOW_HOST))
    for policy in hard:
        claims.append(at_least(f"load 1: requests met by {policy}, %", 98, made[1.0][policy].met, SLOW_HOST))
        claims.append(at_least(f"load 2: requests met by {policy}, %", 96, made[2.0][policy].met, CLOSED))
        again = again_at_all_loads(made, policy)
        why = NAIVE if policy == "priority:hard" else FEW
        claims.append(Claim(f"work run again under {policy}, all loads together, %", "3", number(again), again <= 3, why))
        worst = max(each[policy].latency or 0 for each in made.values())
        claims.append(Claim(f"{policy}: from the decision to a free device, 99 of 100, ms", "22", number(worst, 1), worst <= 22, SLOW_HOST))
    return Reproduction("trem-software", "TReM: requests that end in time beside long kernels", "on software devices", claims, exhibits,
                        SETTLED_SOFTWARE)
