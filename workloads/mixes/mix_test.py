#!/usr/bin/env python3
"""What mix.py draws, against CASE's words and the programs' own --footprint.

Usage: mix_test.py DIRECTORY_OF_PROGRAMS"""
import functools
import pathlib
import re
import subprocess
import sys
import unittest

import mix

PROGRAMS = ""


def jobs_of(*arguments):
    args = mix.parse(list(arguments))
    return mix.draw_jobs(args)


@functools.lru_cache(maxsize=None)
def footprint(command):
    program, *options = command
    asked = subprocess.run([f"{PROGRAMS}/{program}_static", *options, "--footprint"], check=True, capture_output=True,
                           text=True)
    return int(asked.stdout)


def footprint_of(job):
    return footprint(tuple(job["command"]))


class Rodinia(unittest.TestCase):
    def test_large_jobs_to_small_ones_as_in_the_table(self):
        ratios = {"W1": 1, "W2": 2, "W3": 3, "W4": 5, "W5": 1, "W6": 2, "W7": 3, "W8": 5}
        for name, ratio in ratios.items():
            jobs = jobs_of(name)
            count = 16 if name < "W5" else 32
            self.assertEqual(len(jobs), count)
            large = sum(job["kind"] == "large" for job in jobs)
            self.assertEqual(large, round(count * ratio / (ratio + 1)), name)

    def test_kinds_are_as_many_and_of_the_programs_that_the_paper_names(self):
        self.assertEqual((len(mix.LARGE), len(mix.SMALL)), (10, 7))
        large, small = {kind[0] for kind in mix.LARGE}, {kind[0] for kind in mix.SMALL}
        self.assertEqual(large ^ small, {"bfs", "lavamd"})
        self.assertIn("bfs", small)
        self.assertEqual(len(large | small), 7)

    def test_every_job_takes_the_memory_of_its_class(self):
        for scale in (1, 16, 128, 1024):
            args = mix.parse(["W1", "--scale", str(scale)])
            for label, kinds in (("large", mix.LARGE), ("small", mix.SMALL)):
                for kind in kinds:
                    job = mix.rodinia_job(label, kind, args)
                    memory = footprint_of(job) * scale
                    if label == "large":
                        self.assertTrue(mix.LARGE_FROM < memory <= mix.MOST, (job, memory / mix.GIB))
                    else:
                        self.assertTrue(mix.SMALL_FROM <= memory <= mix.LARGE_FROM, (job, memory / mix.GIB))

    def test_drawn_commands_are_understood_and_of_their_class(self):
        for name in mix.MIXES:
            for job in jobs_of(name, "--scale", "128", "--blocks", "112", "--seed", "3"):
                large = footprint_of(job) * 128 > mix.LARGE_FROM
                self.assertEqual(job["kind"], "large" if large else "small", job)

    def test_the_largest_is_a_lavamd_of_about_13_gb(self):
        args = mix.parse(["W1"])
        largest = max((mix.rodinia_job("large", kind, args) for kind in mix.LARGE), key=footprint_of)
        self.assertEqual(largest["program"], "lavamd")
        self.assertAlmostEqual(footprint_of(largest) / 1e9, 13, delta=0.7)


class Networks(unittest.TestCase):
    MODES = ("predict", "train", "detect", "generate")

    def test_eight_alike_or_128_of_all(self):
        for mode in self.MODES:
            jobs = jobs_of("nn-" + mode)
            self.assertEqual([job["kind"] for job in jobs], [mode] * 8)
        jobs = jobs_of("nn-random")
        self.assertEqual(len(jobs), 128)
        self.assertEqual({job["kind"] for job in jobs}, set(self.MODES))

    def test_the_memory_is_what_the_program_says(self):
        for scale in (1, 64, 1024):
            for mode in self.MODES:
                job = jobs_of("nn-" + mode, "--scale", str(scale))[0]
                net = mix.network(mode, scale)
                self.assertEqual(footprint_of(job), mix.network_bytes(mode, net), job)

    def test_eight_fit_a_device_together(self):
        for mode in self.MODES:
            jobs = jobs_of("nn-" + mode, "--scale", "64")
            self.assertLessEqual(sum(footprint_of(job) for job in jobs), 16 * mix.GIB / 64)


class Rain(unittest.TestCase):
    # The page names each program's options; a test of its own text, so that both stay the same.
    def test_the_page_has_the_same_commands(self):
        page = (pathlib.Path(mix.__file__).parent.parent / "README.md").read_text(encoding="utf-8")
        for job in jobs_of("rain"):
            options = job["command"][1:job["command"].index("--seed")]
            whole = " ".join([job["command"][0]] + options)
            for unit, size in (("m", 1 << 20), ("k", 1 << 10)):
                for count in (1, 2, 4, 8, 16):
                    whole = re.sub(rf"(--(?:size|nodes|paths)) {count * size}\b", rf"\1 {count}{unit}", whole)
            self.assertTrue(re.search(rf"\| {re.escape(whole)} (\(|\|)", page), whole)

    def test_pairs_are_in_the_tables_order(self):
        apps = {letter: [job["app"] for job in jobs_of("rain-" + letter)] for letter in mix.LETTERS}
        self.assertEqual(apps["A"], ["BS-L", "BS-S"])
        self.assertEqual(apps["B"], ["BS-L", "MonteCarlo"])
        self.assertEqual(apps["Y"], ["MatMul", "Gaussian"])
        # "when one of the applications is Gaussian": Rain, 5.4.2.
        self.assertEqual([letter for letter in mix.LETTERS if "Gaussian" in apps[letter]], list("EJOTY"))

    def test_every_command_is_understood(self):
        for job in jobs_of("rain", "--scale", "64", "--work", "0.001", "--blocks", "56"):
            self.assertGreater(footprint_of(job), 0)


class Drawing(unittest.TestCase):
    @staticmethod
    def text_of(*arguments):
        args = mix.parse(list(arguments))
        return mix.as_toml(mix.draw_jobs(args), args)

    def test_the_same_seed_gives_the_same_file(self):
        for name in list(mix.MIXES) + ["nn-random"]:
            self.assertEqual(self.text_of(name, "--seed", "7"), self.text_of(name, "--seed", "7"))

    def test_another_seed_gives_another(self):
        texts = {self.text_of("W5", "--seed", str(seed)) for seed in range(20)}
        self.assertEqual(len(texts), 20)

    # Not of this version of Python, nor of this machine: a mix that is published by its seed must stay what it is.
    def test_a_seed_gives_what_it_gave(self):
        programs = [job["program"] for job in jobs_of("W1", "--seed", "1")]
        self.assertEqual(programs, [
            "backprop", "needle", "backprop", "lavamd", "needle", "srad_v1", "srad_v1", "srad_v1", "needle", "bfs",
            "srad_v2", "srad_v1", "backprop", "needle", "bfs", "srad_v1"])

    def test_every_name_is_there_once(self):
        names = [job["name"] for job in jobs_of("nn-random")]
        self.assertEqual(len(set(names)), len(names))


if __name__ == "__main__":
    PROGRAMS = sys.argv.pop(1)
    unittest.main()
