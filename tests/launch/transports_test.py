#!/usr/bin/env python3
"""`capstan settings --transports`: the routes that ranks find by connecting, alone and under mpirun."""
# Tests: launch/peer_process.cpp
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from job import CAPSTAN, HOST, JobTest, main

WITHOUT_SHARED_MEMORY = {"UCX_TLS": "tcp,self"}
# Excludes adapters, so that the results are the same on a cluster.
NO_ADAPTERS = {"UCX_TLS": "tcp,self,sysv,posix"}


class Transports(JobTest):
    def show(self, *options, ranks=0, env=NO_ADAPTERS, code=0):
        job = self.start([CAPSTAN, "settings", "--transports", *options], ranks, env=env)
        self.assertEqual(self.exit_code(job), code, job.stderr)
        self.said = job.stderr
        return job.stdout

    def paragraph(self, text, kind):
        """The paragraph "ps on this host" as {label: text}; the label of the first line is ""."""
        lines = text.partition(f"ps on {kind} host")[2].splitlines()
        found = {"": lines[0].strip()}
        for line in lines[1:]:
            if not line.startswith("  "):
                break
            label, _, rest = line.strip().partition("  ")
            found[label] = rest.strip()
        return found

    def here(self, *options, **how):
        return self.paragraph(self.show(*options, **how), "this")

    def test_what_ucx_offers(self):
        text = self.show()
        self.assertRegex(text, rf"^UCX \d+\.\d+\.\d+ on {HOST}, with UCX_TLS=tcp,self,sysv,posix UCX_NET_DEVICES=all\n")
        self.assertRegex(text, r"\n  network +.*tcp/lo")
        self.assertRegex(text, r"\n  hardware RMA +none")
        self.assertRegex(text, r"\n  shared memory +.*sysv/memory.*\n")
        text = self.show(env={"UCX_TLS": "all", "CAPSTAN_UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"})
        self.assertIn("UCX_TLS=tcp,self UCX_NET_DEVICES=lo", text)
        self.assertRegex(text, r"\n  network +tcp/lo\n")
        self.assertRegex(text, r"\n  shared memory +none\n")

    def test_alone(self):
        route = self.here()
        self.assertRegex(route[""], r"^mapped memory; calls over tcp/\S+$")
        self.assertEqual(route["--require-transport"], "mapped and rdma accept it")
        route = self.here("--window", "am")
        self.assertRegex(route[""], r"^active messages over tcp/\S+$")
        self.assertEqual((route["reason"], route["--require-transport"]), ("--window am", "mapped and rdma refuse it"))
        route = self.here("--window", "rma")
        self.assertRegex(route[""], r"^emulated remote memory access over tcp/\S+$")
        route = self.here(env=WITHOUT_SHARED_MEMORY)
        self.assertRegex(route[""], r"^active messages over tcp/\S+$")
        self.assertIn("UCX_TLS lacks sysv and posix", route["reason"])
        self.assertNotIn("unused env variable", self.said)

    def test_alone_predicts_another_host(self):
        only_loopback = {**NO_ADAPTERS, "UCX_NET_DEVICES": "lo"}
        route = self.paragraph(self.show(env=only_loopback), "another")
        self.assertEqual(route[""], "unreachable")
        self.assertIn("UCX_NET_DEVICES", route["reason"])
        route = self.paragraph(self.show("--window", "mapped"), "another")
        self.assertEqual(route[""], "unreachable")

    def test_full_dev_shm(self):
        small = 'mount -t tmpfs -o size=64k tmpfs /dev/shm || exit 77; exec "$@"'
        command = ["unshare", "-m", "sh", "-c", small, "sh"]
        if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            self.skipTest("a small /dev/shm needs a mount namespace, which is not permitted here")
        job = self.start([*command, CAPSTAN, "settings", "--transports"], env=NO_ADAPTERS)
        self.assertEqual(self.exit_code(job), 3, job.stderr)  # resource_exhausted
        error = next(line for line in job.stderr.splitlines() if line.startswith("capstan: "))
        numbers = re.search(r"/dev/shm has (\d+) of (\d+) bytes free, expected (\d+) ", error)
        self.assertIsNotNone(numbers, error)
        free, size, needed = map(int, numbers.groups())
        self.assertLessEqual(free, size)
        self.assertEqual(size, 64 << 10)
        self.assertGreater(needed, 8 * size)

    def test_alone_errors(self):
        self.show("--window", "mapped", env=WITHOUT_SHARED_MEMORY, code=4)
        self.assertIn("capstan: memory of a second process on this host cannot be mapped", self.said)
        self.assertEqual(self.here(env={"UCX_TLS": "posix,self"}, code=3)[""], "unreachable")
        self.assertIn("capstan: UCX cannot connect", self.said)
        self.assertEqual(self.here("--window", "am", "--require-transport", "rdma", code=2)["reason"], "--window am")
        self.assertIn("capstan: --require-transport=rdma refuses", self.said)

    def assert_all_routes(self, route, ps, workers):
        """One line lists the routes from the coordinator and every worker to every ps."""
        clients = ["coordinator 0", *(f"worker {number}" for number in range(workers))]
        routes = [f"{client} on {HOST} -> ps {number} on {HOST}" for client in clients for number in range(ps)]
        self.assertEqual(route["routes"], f"{len(routes)}: {', '.join(routes)}")

    def test_under_mpirun(self):
        text = self.show("--ps", 2, ranks=5)
        self.assertEqual((text.count("UCX "), text.count("ps on ")), (1, 1), text)
        self.assertIn("1 coordinator, 2 ps, 2 workers, --window auto", text)
        route = self.paragraph(text, "this")
        self.assertRegex(route[""], r"^mapped memory; calls over tcp/\S+$")
        self.assert_all_routes(route, ps=2, workers=2)

    def test_under_mpirun_by_messages(self):
        route = self.here("--window", "am", ranks=3)
        self.assertRegex(route[""], r"^active messages over tcp/\S+$")
        self.assertEqual(route["reason"], "--window am")
        self.assert_all_routes(route, ps=1, workers=1)

    def test_under_mpirun_without_shared_memory(self):
        route = self.here("--ps", 1, ranks=4, env=WITHOUT_SHARED_MEMORY)
        self.assertRegex(route[""], r"^active messages over tcp/\S+$")
        self.assertIn("UCX_TLS lacks sysv and posix", route["reason"])
        self.assert_all_routes(route, ps=1, workers=2)

    def test_under_mpirun_errors(self):
        route = self.here("--window", "am", "--require-transport", "mapped", ranks=3, code=2)
        self.assertEqual(route["reason"], "--window am")
        self.assertEqual(self.said.count("capstan: --require-transport=mapped refuses"), 1, self.said)
        self.assertEqual(self.here(ranks=3, env={"UCX_TLS": "posix,self"}, code=4)[""], "unreachable")
        self.assertIn("capstan: ps 0 ", self.said)


if __name__ == "__main__":
    main()
