#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills, stops, delays and cuts a federation of processes; it must end with the bytes of one
process, and with every message on the disk that was acknowledged.

    tests/chaos.py --program build/release/fedgen [--kills 50] [--seed 1] [--config tests/chaos.toml]
                   [--set KEY=VALUE]

First `fedgen train` makes the reference. Then a Cloud and its learners run as processes on
loopback. What is to happen is drawn from the seed and spread over the whole run, from join to
race, by how far the run is:

- kill: SIGKILL to the Cloud or a learner, which is started again after a moment;
- stop: SIGSTOP for longer than the learners' deadline, then SIGCONT;
- each learner reaches the Cloud through a proxy of this program, which delays some pieces of the
  stream, by 0 to 4/3 of the deadline (40 s for the 30 s that learners wait by default), so that
  requests are sent twice, and cuts connections in the middle of a piece.

--namespace runs all of it in a network namespace of its own, with loss by nft and a limited rate
by tc, where that is allowed; nothing outside of the namespace is touched.

Exit code 0 if all is well, 1 otherwise; the last line says what was done. Standard library only.
"""

import argparse
import asyncio
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

TICK = 0.005  # s between two looks at the run
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Failure(Exception):
    """What went wrong, in one line."""


def end_with_this_program():
    ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"fedgen {words[0]}: exit code {done.returncode}: {done.stderr.strip()}")


class Node:
    """The Cloud or a learner: a process that may die and come back."""

    def __init__(self, name, command, log):
        self.name = name
        self.command = command
        self.log = pathlib.Path(log)
        self.process = None
        self.back_at = 0  # when it is to be started again, while it is down
        self.done = False
        self.read = 0  # bytes of the log
        self.round = 0  # last that it was answered
        self.trained = False
        self.acknowledged = set()  # steps
        self.late = 0  # requests that were sent again because no answer came in time
        self.lost = 0  # or because there was no connection any more

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=end_with_this_program)

    def is_up(self):
        return self.process is not None

    def kill(self):
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.process = None

    def look(self):
        """Reads what it has written since."""
        if not self.log.exists():
            return
        with open(self.log, "rb") as log:
            log.seek(self.read)
            text = log.read()
        complete = text.rfind(b"\n") + 1
        self.read += complete
        for line in text[:complete].splitlines():
            with contextlib.suppress(ValueError):
                self.hear(json.loads(line))

    def hear(self, event):
        kind = event.get("event")
        if kind == "round" and event.get("state") == "resting":
            pass  # it asked, and nothing of that is kept
        elif kind == "round":
            # It was answered when it submitted and when it closed.
            self.round = max(self.round, event["round"])
            self.acknowledged |= {2 * event["round"] - 1, 2 * event["round"]}
        elif kind == "trained":
            self.trained = True
            self.acknowledged.add(2 * event["round"] + 1)
        elif kind == "trouble":
            self.late += "no answer in time" in event["text"]
            self.lost += "no answer in time" not in event["text"]

    def last_words(self):
        with contextlib.suppress(OSError):
            lines = self.log.read_text(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else "nothing in its log"
        return "no log"


class Proxy:
    """Between one learner and the Cloud: a network on a bad day."""

    def __init__(self, draw, target, options, counts):
        self.draw = draw
        self.target = target
        self.options = options
        self.counts = counts
        self.server = None
        self.port = 0
        self.tasks = set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        far_writer = None
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            pumps = {asyncio.create_task(self.pump(reader, far_writer)),
                     asyncio.create_task(self.pump(far_reader, writer))}
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in pumps:
                    task.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        except (OSError, asyncio.CancelledError):
            pass  # the Cloud is down, or this program ends
        finally:
            for one in (writer, far_writer):
                if one is not None:
                    one.transport.abort()
            self.tasks.discard(asyncio.current_task())

    async def pump(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                fate = self.draw.random()
                if fate < self.options.cut:
                    writer.write(data[: len(data) // 2])
                    await writer.drain()
                    self.counts["cuts"] += 1
                    return
                if fate < self.options.cut + self.options.delay:
                    seconds = self.draw.uniform(0, self.options.deadline * 4 / 3)
                    self.counts["delays"] += 1
                    self.counts["late"] += seconds > self.options.deadline
                    await asyncio.sleep(seconds)
                writer.write(data)
                await writer.drain()

    async def stop(self):
        self.server.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def plan(draw, kills, stops, num_learners):
    """What is to happen, how far the run is then, whom it hits, and two moments to wait: before,
    and before who was killed comes back. How far: -1 is before all have joined, 0..1 the share of
    rounds, 2 after the last."""
    at_join = max(2, kills // 20)
    moments = [(-1.0, "kill")] * at_join
    moments += [(draw.random(), "kill") for _ in range(kills - at_join)]
    moments += [(draw.random(), "stop") for _ in range(stops)]
    # How many of these find somebody who is not done yet nobody knows: they are beyond `kills`.
    moments += [(2.0, "kill")] * max(4, kills // 10)
    # Every fourth hits the Cloud.
    return collections.deque(
        (when, what, draw.randint(1, num_learners) if index % 4 else 0, draw.uniform(0, 0.05),
         draw.uniform(0, 0.15)) for index, (when, what) in enumerate(sorted(moments)))


class Chaos:
    def __init__(self, options, directory):
        self.options = options
        self.directory = pathlib.Path(directory)
        self.counts = collections.Counter()
        self.draw = random.Random(options.seed)
        self.deadline = time.monotonic() + 60 * options.minutes
        self.nodes = []
        self.proxies = []
        self.rounds = 0  # of the reference
        self.stopped = {}  # node: until when
        self.strike_at = None  # when the next of the plan happens, once its time has come

    # ---- Before ----

    def make_reference(self):
        words = ["--config", self.options.config, "--seed", str(self.options.seed)]
        if self.options.rounds:
            words += ["--set", f"federation.rounds={self.options.rounds}"]
        for override in self.options.set:
            words += ["--set", override]
        run(self.options.program, "train", *words, "--out", str(self.directory / "one"),
            "--no-figures")
        run(self.options.program, "up", *words, "--out", str(self.directory / "many"),
            "--prepare-only")
        with open(self.directory / "one" / "metrics.csv", encoding="utf-8") as metrics:
            header = metrics.readline().strip().split(",")
            column = header.index("round")
            self.rounds = max(int(line.split(",")[column]) for line in metrics)

    async def set_up(self):
        many = self.directory / "many"
        port = free_port()
        program = self.options.program
        self.nodes.append(Node("cloud", [
            program, "cloud", "--listen", f"127.0.0.1:{port}", "--tls", str(many / "tls" / "cloud"),
            "--run", str(many / "run.toml"), "--store", f"sqlite:{many}/cloud/cloud.db",
            "--seed", str(self.options.seed), "--log", "json"], many / "cloud.log"))
        for learner in range(1, len(list((many / "mine").iterdir())) + 1):
            name = f"learner-{learner}"
            proxy = Proxy(random.Random(f"{self.options.seed} {name}"), port, self.options,
                          self.counts)
            await proxy.start()
            self.proxies.append(proxy)
            self.nodes.append(Node(name, [
                program, "learner", "--cloud", f"127.0.0.1:{proxy.port}",
                "--tls", str(many / "tls" / name), "--id", str(learner),
                "--config", str(many / "mine" / f"{name}.toml"),
                "--secret", str(many / "secrets" / f"{name}.key"), "--out", str(many / name),
                "--no-certificate", "--threads", "1", "--deadline", str(self.options.deadline),
                "--log", "json"], many / f"{name}.log"))

    # ---- Meanwhile ----

    @property
    def learners(self):
        return self.nodes[1:]

    def progress(self):
        """-1, 0..1, or 2: see plan()."""
        if any(node.trained or node.done for node in self.learners):
            return 2
        most = max(node.round for node in self.learners)
        if most >= self.rounds:
            return 2
        return most / self.rounds if most > 0 else -1

    def tend(self):
        """Starts who is down, lets go who was stopped long enough, notices who has ended."""
        now = time.monotonic()
        if now > self.deadline:
            raise Failure(f"not done after {self.options.minutes} minutes, in round "
                          f"{max(node.round for node in self.learners)} of {self.rounds}")
        for node, until in list(self.stopped.items()):
            if now >= until:
                if node.is_up():
                    node.process.send_signal(signal.SIGCONT)
                del self.stopped[node]
        for node in self.nodes:
            node.look()
            if not node.is_up():
                if not node.done and now >= node.back_at:
                    node.start()
                continue
            code = node.process.poll()
            if code is None:
                continue
            node.process = None
            node.look()
            if code != 0 or node is self.nodes[0]:
                raise Failure(f"{node.name} ended with exit code {code}: {node.last_words()}")
            node.done = True

    def victim(self, whom):
        """Somebody who is up; whom if that may be."""
        for step in range(len(self.nodes)):
            node = self.nodes[(whom + step) % len(self.nodes)]
            if node.is_up():
                return node
        return None

    def strike(self, moments):
        """Does what is due."""
        now = time.monotonic()
        if not moments or moments[0][0] > self.progress():
            return
        when, what, whom, wait, pause = moments[0]
        if self.strike_at is None:
            self.strike_at = now + wait
        node = self.victim(whom)
        if now < self.strike_at or node is None:
            return
        moments.popleft()
        self.strike_at = None
        if what == "kill":
            node.kill()
            self.stopped.pop(node, None)
            node.back_at = now + pause
            self.counts["kills"] += 1
            self.counts["kills of the Cloud"] += node is self.nodes[0]
            self.counts["join" if when < 0 else "rounds" if when <= 1 else "end"] += 1
        elif node not in self.stopped:
            node.process.send_signal(signal.SIGSTOP)
            self.stopped[node] = now + self.options.deadline * 1.25
            self.counts["stops"] += 1

    async def run_through(self):
        moments = plan(self.draw, self.options.kills, self.options.stops, len(self.learners))
        # The last learner comes late, so that nobody has joined before some were killed.
        last = self.nodes[-1]
        last.back_at = float("inf")
        while not all(node.done for node in self.learners):
            self.tend()
            self.strike(moments)
            if last.back_at == float("inf") and not (moments and moments[0][0] < 0):
                last.back_at = 0
            await asyncio.sleep(TICK)
        cloud = self.nodes[0]
        if cloud.is_up():
            cloud.process.send_signal(signal.SIGCONT)
            cloud.process.terminate()
            if cloud.process.wait(timeout=60) != 0:
                raise Failure(f"the Cloud ended with exit code {cloud.process.returncode}")
            cloud.process = None

    # ---- After ----

    def check_policies(self):
        reference = {p.name: p.read_bytes()
                     for p in (self.directory / "one" / "policies").iterdir()}
        seen = set()
        for node in self.learners:
            policies = self.directory / "many" / node.name / "policies"
            names = {p.name for p in policies.iterdir()}
            if "best.fgp" not in names:
                raise Failure(f"{node.name} has no best.fgp")
            for name in sorted(names):
                if reference.get(name) != (policies / name).read_bytes():
                    raise Failure(f"{node.name}/policies/{name} is not that of one process")
            self.counts["policies"] += len(names)
            seen |= names
        if seen != set(reference):
            raise Failure(f"nobody has {', '.join(sorted(set(reference) - seen))}")

    def check_store(self):
        store = self.directory / "many" / "cloud" / "cloud.db"
        with contextlib.closing(sqlite3.connect(store)) as database:
            rows = database.execute("SELECT learner, step FROM messages").fetchall()
        kept = set(rows)
        if len(kept) != len(rows):
            raise Failure("the store has two messages of one learner and step")
        for index, node in enumerate(self.learners):
            lost = sorted(step for step in node.acknowledged if (index, step) not in kept)
            if lost:
                raise Failure(f"{node.name} was answered in step {lost[0]}, which the store "
                              f"does not have ({len(lost)} such steps)")
            self.counts["acknowledged"] += len(node.acknowledged)
            self.counts["sent again"] += node.late
            self.counts["lost"] += node.lost
        self.counts["rows"] = len(rows)

    def check_kills(self):
        if self.counts["kills"] < self.options.kills:
            raise Failure(f"only {self.counts['kills']} kills fitted in the run")

    # ---- All of it ----

    async def go(self):
        try:
            await self.set_up()
            await self.run_through()
        finally:
            for node in self.nodes:
                node.kill()
            for proxy in self.proxies:
                await proxy.stop()
        self.check_policies()
        self.check_store()
        self.check_kills()

    def summary(self):
        counts = self.counts
        return (f"{counts['kills']} kills ({counts['kills of the Cloud']} of the Cloud; "
                f"{counts['join']} at join, {counts['rounds']} in rounds, {counts['end']} at the "
                f"end), {counts['stops']} stops, {counts['delays']} delays ({counts['late']} past "
                f"the deadline), {counts['cuts']} cuts, requests sent again: {counts['sent again']} past "
                f"their deadline, {counts['lost']} without a connection; {counts['rows']} rows, "
                f"{counts['acknowledged']} acknowledged and all there, {counts['policies']} "
                f"policies equal")


# ---- A network namespace -------------------------------------------------------------------------


def namespace_id():
    return os.readlink("/proc/self/ns/net")


def quiet(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode == 0, (done.stderr or done.stdout).strip().splitlines()[:1]


def enter_namespace(arguments):
    """Runs this program again in a network namespace that goes with it. Where that is not allowed
    it says so, which is no failure."""
    for tool in ("unshare", "ip", "tc"):
        if shutil.which(tool) is None:
            print(f"chaos: skipped in a network namespace: there is no {tool}")
            return 0
    able, why = quiet("unshare", "--net", "true")
    if not able:
        print(f"chaos: skipped in a network namespace: {' '.join(why)}")
        return 0
    words = [word for word in arguments if word != "--namespace"]
    return subprocess.run(["unshare", "--net", sys.executable, __file__, *words,
                           "--inside", namespace_id()], check=False).returncode


def make_weather(outside):
    """A slow and lossy loopback. Only ever in a namespace of our own."""
    if namespace_id() == outside or not outside:
        raise Failure("this is not a network namespace of its own")
    able, why = quiet("ip", "link", "set", "lo", "up")
    if not able:
        raise Failure(f"loopback: {' '.join(why)}")
    weather = []
    able, why = quiet("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "20mbit", "burst",
                      "64kb", "latency", "100ms")
    weather.append("20 Mbit/s" if able else f"no limit of the rate ({' '.join(why)})")
    rules = ("add table inet chaos; "
             "add chain inet chaos out { type filter hook output priority 0; }; "
             "add rule inet chaos out meta l4proto tcp numgen random mod 1000 < 10 drop")
    if shutil.which("nft") is None:
        weather.append("no loss (there is no nft)")
    else:
        able, why = quiet("nft", rules)
        weather.append("1 % loss" if able else f"no loss ({' '.join(why)})")
    print(f"chaos: in a network namespace: {', '.join(weather)}")


# ---- The program ---------------------------------------------------------------------------------


def read_arguments():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the fedgen to run")
    parser.add_argument("--config", default=str(here / "chaos.toml"))
    parser.add_argument("--kills", type=int, default=50, help="at least so many")
    parser.add_argument("--stops", type=int, help="[a tenth of the kills]")
    parser.add_argument("--rounds", type=int, help="[as configured]")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="overrides a key of the configuration; repeatable")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deadline", type=float, default=1.0, help="s, of a learner's request")
    parser.add_argument("--delay", type=float, default=0.01, help="share of pieces delayed")
    parser.add_argument("--cut", type=float, default=0.004, help="share of pieces cut")
    parser.add_argument("--minutes", type=float, help="give up then [5, and 1 more for each 20 kills]")
    parser.add_argument("--namespace", action="store_true", help="with loss and a limited rate")
    parser.add_argument("--keep", metavar="DIR", help="leave everything there")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    options.config = str(pathlib.Path(options.config).resolve())
    if options.stops is None:
        options.stops = max(2, options.kills // 10)
    if options.minutes is None:
        options.minutes = 5 + options.kills / 20
    return options


def main():
    options = read_arguments()
    if options.namespace:
        return enter_namespace(sys.argv[1:])
    begin = time.monotonic()
    # So that a request to end leaves no process behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    directory = options.keep or tempfile.mkdtemp(prefix="fedgen-chaos-")
    os.makedirs(directory, exist_ok=True)
    chaos = Chaos(options, directory)
    problem = None
    try:
        if options.inside is not None:
            make_weather(options.inside)
        chaos.make_reference()
        asyncio.run(chaos.go())
    except Failure as failure:
        problem = str(failure)
    finally:
        if problem is None and not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    seconds = time.monotonic() - begin
    print(f"chaos: {'ok' if problem is None else 'FAILED'}, seed {options.seed}, "
          f"{seconds:.0f} s: {chaos.summary()}")
    if problem is not None:
        print(f"chaos: {problem}; see {directory}", file=sys.stderr)
    return 0 if problem is None else 1


if __name__ == "__main__":
    sys.exit(main())
