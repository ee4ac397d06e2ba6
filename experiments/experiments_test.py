#!/usr/bin/env python3
"""What of the reproductions has to hold: experiments_test.py HEDDLE. Simulated, so the same each time, but for a few seconds."""

import os
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import case  # noqa: E402
import eager  # noqa: E402
import gemini  # noqa: E402
import page  # noqa: E402
import rain  # noqa: E402
import software  # noqa: E402
import trem  # noqa: E402
from exhibit import Claim, Exhibit, Reproduction, markdown  # noqa: E402
from simulation import Failed, Scenario, Simulator  # noqa: E402

HEDDLE = os.path.abspath(sys.argv.pop(1))
EPISODES = os.path.join(os.path.dirname(HEDDLE), "..", "workloads", "episodes")


def silent(_):
    pass


class Gemini(unittest.TestCase):
    def test_every_claim_holds(self):
        self.assertEqual([claim.text for claim in gemini.simulate(Simulator(HEDDLE), 1, silent).missed()], [])


    def test_shares_are_those_of_windows_behind_the_first(self):
        looks = [(gemini.LOOK * at, {"a": 0.5 * at, "b": at}) for at in range(2 * gemini.LOOKS_OF_WINDOW + 2)]
        self.assertEqual(gemini.shares_of(looks, ["b", "a"]), [[40, 40], [20, 20]])
        with self.assertRaisesRegex(Failed, "not at work"):
            gemini.shares_of(looks, ["a", "c"])

    @unittest.skipUnless(os.access(EPISODES, os.X_OK), "the workloads were not built")
    def test_programs_on_a_device_of_its_own_are_watched(self):
        loads = [(["--share", "0.2"], [EPISODES, *gemini.EPISODES, *gemini.ALWAYS]), (["--share", "0.8"], [EPISODES, *gemini.EPISODES, *gemini.LAZY])]
        with software.Node(HEDDLE, "P100", 1, dispatch="token", slowdown=gemini.SLOWDOWN) as node, node.running(loads):
            deadline = time.monotonic() + 60
            while min((looks := node.looks(2, 1))[1][1].get(name, 0) for name in ("job-0", "job-1")) == 0:
                self.assertLess(time.monotonic(), deadline)
        self.assertGreater(looks[1][0], looks[0][0])


class Case(unittest.TestCase):
    def setUp(self):
        self.simulator = Simulator(HEDDLE)

    def test_a_mix_is_the_same_for_the_same_seed(self):
        self.assertEqual(case.draw("W3", 5), case.draw("W3", 5))
        self.assertNotEqual(case.draw("W3", 5), case.draw("W3", 6))

    def test_memory_is_never_missing_under_alg_3_and_its_throughput_is_above_sa(self):
        for node in (case.P100, case.V100):
            for name in ("W1", "W4"):
                batch = case.rodinia(self.simulator, node, name, 1)
                self.assertEqual(batch.mgb().refused, 0)
                self.assertGreater(batch.mgb().throughput, 1.5 * batch.sa().throughput)

    def test_cg_crashes_jobs(self):
        batch = case.rodinia(self.simulator, case.P100, "W4", 1)
        self.assertGreater(batch.run("cg:6", 12).refused, 0)

    def test_networks_that_fill_a_gpu_gain_most(self):
        curve = case.networks(self.simulator, 1, silent).values("Alg. 3 over schedGPU")
        self.assertLess(curve[0], 1.3)
        self.assertGreater(curve[-1], 3)


class Rain(unittest.TestCase):
    def test_what_is_due_is_the_share_or_all_that_is_used(self):
        little, much = rain.SHORT[4], rain.LONG[3]
        due = rain.due((much, little), (1, 1))
        self.assertEqual(due[1], rain.usable(little))
        self.assertAlmostEqual(sum(due), min(1, rain.usable(little) + rain.usable(much)))
        self.assertAlmostEqual(rain.jain([2, 2]), 1)

    def test_balancers_that_look_are_above_the_one_that_does_not(self):
        pairs = rain.Pairs(Simulator(HEDDLE), [1], silent)
        for letter in ("A", "Y"):
            self.assertGreater(pairs.speedup(letter, "gmin", "open"), pairs.speedup(letter, "grr", "open"))

    def test_each_program_runs_on_software_in_one_pair(self):
        names = [each.name for letter in rain.EACH_ONCE for each in rain.PAIRS[letter]]
        self.assertEqual(sorted(names), sorted(rain.PROGRAMS))


class Trem(unittest.TestCase):
    POLICIES = ["fifo", "priority:off", "elastic:off", "elastic:hard"]

    @classmethod
    def setUpClass(cls):
        trem.HORIZON = 300
        cls.made = trem.measure(Simulator(HEDDLE), [1], silent, cls.POLICIES, loads=[1.0, 2.0])

    def test_requests_are_met_where_devices_are_kept_for_them(self):
        met = {policy: each.met for policy, each in self.made[1.0].items()}
        self.assertLess(met["fifo"], met["priority:off"])
        self.assertLess(met["priority:off"], 98)
        self.assertGreaterEqual(met["elastic:hard"], 99.5)

    def test_where_they_ask_for_all_devices_few_are_missed(self):
        self.assertGreaterEqual(self.made[2.0]["elastic:hard"].met, 97.5)
        self.assertGreaterEqual(self.made[2.0]["elastic:hard"].met, self.made[2.0]["elastic:off"].met)

    def test_little_work_is_run_again(self):
        self.assertLessEqual(trem.again_at_all_loads(self.made, "elastic:hard"), 2)
        self.assertEqual(trem.again_at_all_loads(self.made, "elastic:off"), 0)

    def test_jobs_ask_for_the_load(self):
        jobs = trem.jobs_of(0.5, trem.REQUESTS, {})
        asked = sum(job["count"] * (float(job["busy"][:-2]) + float(job["busy_most"][:-2])) / 2e9 for job in jobs)
        self.assertAlmostEqual(asked / trem.HORIZON, 0.5 * trem.GPUS, delta=0.05)


class Eager(unittest.TestCase):
    RESULT = {"overrun": 0.01, "timing_valid": True, "jobs": [
        {"name": "2MM 1", "exit_status": 0, "started_s": 0, "granted_s": 0.5, "ended_s": 4},
        {"name": "2MM 2", "exit_status": 0, "started_s": 1, "granted_s": 3, "ended_s": 10}]}

    def test_pending_and_running_add_up(self):
        log = "task 2 gets device 0: launched eagerly: 8 MiB\ntask 2 of session 1 has 4 MiB more on device 0: copied in 1 ms\n"
        run = eager.Run(self.RESULT, log)
        self.assertEqual((run.pending, run.running), ({"2MM 1": 0.5, "2MM 2": 1.5}, {"2MM 1": 3.5, "2MM 2": 7}))
        self.assertEqual((run.launched, run.promoted, run.makespan), (1, 1, 10))

    def test_a_job_that_crashed_is_told(self):
        crashed = {**self.RESULT, "jobs": [{**self.RESULT["jobs"][0], "exit_status": 1, "granted_s": None}]}
        with self.assertRaisesRegex(Failed, "2MM 1"):
            eager.Run(crashed, "")

    def test_the_queue_is_in_the_papers_order_and_its_jobs_differ(self):
        queue = eager.queue_of(eager.MIXED, "/programs").split("[[job]]")[1:]
        self.assertEqual(len(set(queue)), len(eager.MIXED))
        self.assertEqual(["mm2" in job for job in queue], [kind == "2MM" for kind in eager.MIXED])


class EagerSimulated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        simulator = Simulator(HEDDLE)
        cls.made = eager.simulate(simulator, 1, silent)
        cls.mixed = eager.count_all(simulator, eager.MIXED, silent, "mixed")
        cls.products = eager.count_all(simulator, eager.PRODUCTS, silent, "2MM alone")

    def test_what_does_not_hold_has_a_reason(self):
        missed = self.made.missed()
        self.assertEqual([claim.text.split(",")[0] for claim in missed], ["mean pending time", "the whole queue", "mean turnaround"])
        self.assertTrue(all(claim.why for claim in missed))

    def test_nothing_is_launched_eagerly_unless_asked_for(self):
        for runs in (self.mixed, self.products):
            self.assertEqual([runs[way].launched for way in ("CASE", "Eager Free")], [0, 0])
            self.assertTrue(all(runs[way].launched > 0 for way in ("Eager Launch", "both")))

    def test_both_are_above_each_for_kernels_that_touch_little_on_the_host(self):
        self.assertLess(self.products["Eager Launch"].makespan, 0.9 * self.products["CASE"].makespan)
        self.assertLess(self.products["both"].makespan, self.products["Eager Free"].makespan)

    def test_without_reservations_all_that_returns_is_promoted(self):
        patient = eager.count(Simulator(HEDDLE), eager.MIXED, False, True, age_limit="1h")
        self.assertEqual(patient.moved, patient.on_host)
        self.assertGreater(patient.launched, self.mixed["Eager Launch"].launched)

    def test_it_agrees_with_what_ran_on_software_devices(self):
        # docs/results/2026-11-25-eager-software.md: 50.2 s, and 37.6 s of 2MM alone
        self.assertAlmostEqual(self.mixed["CASE"].makespan, 50.2, delta=0.15 * 50.2)
        self.assertAlmostEqual(self.products["CASE"].makespan, 37.6, delta=0.05 * 37.6)


class Reports(unittest.TestCase):
    MADE = Reproduction("paper", "A <title>", "simulated", [Claim("more & more", "2", "1", False, "because")],
                        [Exhibit("Figure 1", "something", "speedup", ["a", "b"], {"x": [1, None], "y": [3, 4]}, {"a": 2.5})],
                        ["what was open"], "a command")

    def test_a_page_needs_nothing_else_and_escapes(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = page.write(self.MADE, os.path.join(directory, "new"))
            with open(paths[0], encoding="utf-8") as written:
                content = written.read()
        self.assertIn("A &lt;title&gt;", content)
        self.assertIn("more &amp; more", content)
        self.assertNotIn("http", content)
        self.assertEqual(content.count("<rect"), 3 + 2, "a bar for each number and two of the legend")

    def test_the_table_has_means_and_the_papers(self):
        lines = markdown(self.MADE).splitlines()
        self.assertIn("| mean | 2.00 | 4.00 |", lines)
        self.assertIn("| the paper's mean | 2.50 | - |", lines)
        self.assertIn("- more & more: because", lines)

    def test_what_heddle_refuses_is_said(self):
        with self.assertRaisesRegex(Failed, "nonsense"):
            Simulator(HEDDLE).run(Scenario([{"preset": "P100"}], [{"busy": "1s"}]), [("nonsense", "open")])


if __name__ == "__main__":
    unittest.main()
