"""Kai beside two other programs that ask a model and run its tools: goose and codex. docs/bench.md explains each figure.

scripts/bench peers runs this. It installs both with npm, in fixed versions, into target/peers. All three then talk to a
scripted model on loopback, each with a home of its own. They take turns, so that a busy machine slows all alike.
"""
import contextlib, datetime, http.server, json, os, pathlib, platform, signal, socket, statistics, subprocess, sys, tempfile
import threading, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEERS = ROOT / "target" / "peers"
CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
# The package of each, and the program in it. We start codex itself, without the launcher in JavaScript around it.
PACKAGES = {
    "goose": (f"@aaif/goose-binary-linux-{CPU}@1.52.0", "node_modules/@aaif/goose-binary-*/bin/goose"),
    "codex": ("@openai/codex@0.169.0", "node_modules/@openai/codex-linux-*/vendor/*/bin/codex"),
}
NAMES = ["kai", *PACKAGES]
ROWS = {
    "start_ms": "start (`--version`), ms",
    "ask_ms": "one-shot ask, ms",
    "gap_ms": "gap per round, tool without a process, ms",
    "eight_ms": "eight calls, tool without a process, ms",
    "command_gap_ms": "gap per round, a command, ms",
    "eight_commands_ms": "eight calls, commands, ms",
    "first_request_bytes": "first request, bytes",
    "ready_ms": "daemon ready, ms",
    "idle_rss_mib": "idle memory (RSS), MiB",
    "idle_pss_mib": "idle memory (PSS), MiB",
    "idle_own_mib": "idle memory (anonymous), MiB",
    "program_mib": "program file, MiB",
}
PATIENCE = 60  # seconds; whatever takes longer has failed
ROUNDS = 10


class Failed(Exception):
    """Why a program has no figure, as a sentence."""


def install(name):
    """The program of a package. It stays in target/peers until another version is wanted."""
    package, program = PACKAGES[name]
    folder = PEERS / name
    stamp = folder / "of"
    if not stamp.exists() or stamp.read_text() != package:
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error"]
        folder.mkdir(parents=True, exist_ok=True)
        print(f"installing {package} …", file=sys.stderr)
        try:
            subprocess.run(["npm", "install", "--prefix", folder, *options, package], check=True, timeout=600,
                           capture_output=True, text=True)
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
            raise Failed(f"npm could not install {package} ({said[0]})") from error
        stamp.write_text(package)
    found = list(folder.glob(program))
    if not found:
        raise Failed(f"{package} has no program for this machine")
    return str(found[0])


class Model(http.server.ThreadingHTTPServer):
    """A scripted model in OpenAI's two formats. It asks for so many calls in each round, then says "Done."."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{self.server_port}"
        self.play([])
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def play(self, rounds):
        """Begins anew: each round is a list of calls, and a call is the name of a tool and its arguments."""
        self.rounds, self.bodies, self.arrived, self.answered = rounds, [], [], []

    def gaps(self):
        """Milliseconds from the end of each answer to the arrival of the next request."""
        return [(arrived - answered) * 1000 for answered, arrived in zip(self.answered, self.arrived[1:])]

    def results(self):
        """What the tools returned, from the last request."""
        body = json.loads(self.bodies[-1])
        if "input" in body:
            return [str(item["output"]) for item in body["input"] if item["type"] == "function_call_output"]
        return [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer would wait for a delayed acknowledgement

    def log_message(self, *_):
        pass

    def answer(self, kind, text, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def nothing_here(self):
        self.answer("text/plain", "There is nothing here.", 404)

    def do_GET(self):
        if self.path != "/v1/models":  # goose asks for the list
            return self.nothing_here()
        self.answer("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}))

    def do_POST(self):
        arrived, model = time.perf_counter(), self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        as_stream = {"/v1/chat/completions": completions, "/v1/responses": responses}.get(self.path)
        if as_stream is None:  # Kai asks now and then how much context the model has, as Ollama is asked
            return self.nothing_here()
        model.arrived.append(arrived)
        model.bodies.append(body)
        step = len(model.bodies) - 1
        calls = model.rounds[step] if step < len(model.rounds) else []
        self.answer("text/event-stream", as_stream(step, calls))
        model.answered.append(time.perf_counter())


def completions(step, calls):
    """One answer in the format of chat completions."""
    calls = [{"index": n, "id": f"call-{step}-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
             for n, (name, arguments) in enumerate(calls)]
    delta = {"role": "assistant"} | ({"tool_calls": calls} if calls else {"content": "Done."})
    choices = [{"delta": delta}, {"delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]
    common = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    chunks = [common | {"choices": [choice | {"index": 0}]} for choice in choices]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def responses(step, calls):
    """One answer in the format of the Responses API, which codex speaks."""
    said = {"type": "message", "id": "said", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
    items = [{"type": "function_call", "id": f"item-{step}-{n}", "call_id": f"call-{step}-{n}", "name": name,
              "arguments": arguments} for n, (name, arguments) in enumerate(calls)] or [said]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events = [{"type": "response.created", "response": {"id": "1"}},
              *({"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(items)),
              {"type": "response.completed", "response": {"id": "1", "usage": usage}}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


class Program:
    """One of the three, with a model and a home of its own."""
    # Tools by kind: the name, the arguments of the nth call, and what a good result contains.
    tools = {}

    def __init__(self, file, folder):
        self.file, self.model = file, Model()
        self.home, self.temporary, self.work = (folder / self.name / part for part in ("home", "tmp", "work"))
        for part in (self.home, self.temporary, self.work):
            part.mkdir(parents=True)
        # Not the ordinary temporary folder, because codex does without its helpers if its home is in there.
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary)}
        self.prepare()

    def prepare(self):
        pass

    def allow_commands(self):
        pass

    def took(self, words):
        """Milliseconds from spawn to exit."""
        os.chdir(self.work)
        null = os.open(os.devnull, os.O_RDWR)
        began = time.perf_counter()
        pid = os.posix_spawn(self.file, [self.file, *words], self.env,
                             file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
        late = threading.Timer(PATIENCE, os.kill, (pid, signal.SIGKILL))
        late.start()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        took = (time.perf_counter() - began) * 1000
        late.cancel()
        os.close(null)
        if code != 0:
            raise Failed(f"it exited with {code} after {took:.0f} ms")
        return took

    def ask_ms(self):
        self.model.play([])
        took = self.took(self.ask)
        if len(self.model.bodies) != 1:
            raise Failed(f"it sent {len(self.model.bodies)} requests instead of one")
        return took

    def gaps(self, kind, calls, rounds):
        """The gaps of a conversation with so many rounds of so many calls."""
        name, arguments, good = self.tools[kind]
        numbered = [[(name, json.dumps(arguments(n))) for n in range(first, first + calls)]
                    for first in range(0, calls * rounds, calls)]
        self.model.play(numbered)
        self.took(self.ask_with_tools)
        results = self.model.results()
        bad = [result for result in results if good not in result]
        if bad or len(results) != calls * rounds:
            why = " ".join((bad or ["no result"])[0].split())[:200]
            raise Failed(f"{name} worked {len(results) - len(bad)} times of {calls * rounds} ({why})")
        return self.model.gaps()

    def spawn(self, words, **pipes):
        return subprocess.Popen([self.file, *words], env=self.env, cwd=self.work, stderr=subprocess.DEVNULL, **pipes)

    @contextlib.contextmanager
    def daemon(self):
        """A daemon that has answered for the first time, and how many milliseconds that took."""
        began = time.perf_counter()
        process, answered = self.start()
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            if not answered():
                raise Failed("its daemon did not answer")
            took = (time.perf_counter() - began) * 1000
            late.cancel()
            yield process, took
        finally:
            late.cancel()
            process.terminate()
            late = threading.Timer(PATIENCE, process.kill)
            late.start()
            process.communicate()
            late.cancel()

    def ready_ms(self):
        with self.daemon() as (_, took):
            return took


class Kai(Program):
    name = "kai"
    ask = ask_with_tools = ["ask", "hello"]
    tools = {
        # Different arguments each time, or the loop's guard would stop us.
        "cheap": ("get_local_time", lambda n: {"round": n}, '"success":true'),
        "command": ("shell_command", lambda n: {"command": f"true {n}"}, '"exit_code":0'),
    }

    def prepare(self):
        self.env["KAI_HOME"] = str(self.home)
        self.took(["models", "add", "openai-compatible", "--name", "scripted", "--base-url", f"{self.model.host}/v1",
                   "--model", "scripted"])

    def allow_commands(self):
        self.took(["tools", "enable", "shell_command"])

    def start(self):
        process = self.spawn(["serve", "--port", "0"], stdout=subprocess.PIPE, text=True)

        def answered():
            words = process.stdout.readline().split()
            return len(words) > 1 and answers(words[1].split("/")[2], "/")
        return process, answered


class Goose(Program):
    name = "goose"
    ask = ask_with_tools = ["run", "--no-session", "--text", "hello"]
    tools = {
        "cheap": ("tree", lambda _: {"path": "."}, "(empty directory)"),
        "command": ("shell", lambda n: {"command": f"true {n}"}, "(no output)"),
    }

    def prepare(self):
        self.env |= {"GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "scripted", "GOOSE_MODE": "auto",
                     "OPENAI_HOST": self.model.host, "OPENAI_API_KEY": "none",
                     "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_OFF": "1",
                     # Or it would ask the model for a title as well.
                     "GOOSE_DISABLE_SESSION_NAMING": "true"}

    def start(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = self.spawn(["serve", "--port", str(port), "--dangerously-unauthenticated"], stdout=subprocess.DEVNULL)

        def answered():
            while process.poll() is None:
                try:
                    return answers(f"127.0.0.1:{port}", "/status")
                except ConnectionRefusedError:
                    time.sleep(0.001)
        return process, answered


class Codex(Program):
    name = "codex"
    ask = ["exec", "--skip-git-repo-check", "--ephemeral", "hello"]
    ask_with_tools = ["exec", "--skip-git-repo-check", "hello"]  # without a kept session, get_goal refuses to work
    tools = {
        "cheap": ("get_goal", lambda _: {}, '"goal":null'),
        "command": ("exec_command", lambda n: {"cmd": f"true {n}"}, "Process exited with code 0"),
    }

    def prepare(self):
        self.env["CODEX_HOME"] = str(self.home)
        (self.home / "config.toml").write_text(f"""
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false
analytics.enabled = false
features.plugins = false  # or it would look for plugins on the internet
[model_providers.scripted]
name = "scripted"
base_url = "{self.model.host}/v1"
wire_api = "responses"
""")

    def start(self):
        process = self.spawn(["app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "bench", "version": "1"}}}

        def answered():
            process.stdin.write(json.dumps(hello) + "\n")
            process.stdin.flush()
            return '"result"' in process.stdout.readline()
        return process, answered


def answers(address, path):
    """Whether a server answers in HTTP: with a page, a redirection or a refusal, but not with a failure of its own."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
        return line.recv(65536)[:10] in (b"HTTP/1.1 2", b"HTTP/1.1 3", b"HTTP/1.1 4")


def tried(program, what, measure):
    """The figures of a program, or none and a sentence."""
    try:
        return measure(program)
    except (Failed, OSError, ValueError, LookupError, subprocess.SubprocessError) as why:
        print(f"{program.name} has no figure for \"{ROWS[what]}\": {why}.", file=sys.stderr)
        return None


def in_turns(programs, what, repeats, measure):
    """The median of each program. The first turn only fills caches and is not counted."""
    print(f"{ROWS[what]} …", file=sys.stderr)
    counted = {program: [] for program in programs}
    for turn in range(repeats + 1):
        for program in list(counted):
            figures = tried(program, what, measure)
            if figures is None:
                del counted[program]
            elif turn > 0:
                counted[program] += figures
    return {f"peers_{program.name}_{what}": statistics.median(figures) for program, figures in counted.items()}


def conversations(programs, kind, gap, eight):
    figures = in_turns(programs, gap, 5, lambda program: program.gaps(kind, calls=1, rounds=ROUNDS))
    return figures | in_turns(programs, eight, 5, lambda program: program.gaps(kind, calls=8, rounds=3))


def memory(programs, idle):
    """What each daemon uses when all have been idle for so long."""
    figures = {}
    with contextlib.ExitStack() as stack:
        started = {program: tried(program, "idle_rss_mib", lambda p: stack.enter_context(p.daemon())) for program in programs}
        print(f"idle for {idle:.0f} s …", file=sys.stderr)
        time.sleep(idle)
        for program in filter(started.get, programs):
            process, _ = started[program]
            figures |= tried(program, "idle_rss_mib", lambda p: sizes(p.name, process.pid)) or {}
    return figures


def sizes(name, pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    mib = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    fields = {"idle_rss_mib": "Rss", "idle_pss_mib": "Pss", "idle_own_mib": "Anonymous"}
    return {f"peers_{name}_{what}": mib[field] for what, field in fields.items()}


def sync_ms(folder):
    """Milliseconds until the disk has a small write: Kai and goose wait for that in every round."""
    took = []
    with open(folder / "sync", "wb") as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return took


def installed(binary, folder):
    """Kai and the peers that could be installed."""
    programs = [Kai(str(pathlib.Path(binary).resolve()), folder)]
    for kind in (Goose, Codex):
        try:
            programs.append(kind(install(kind.name), folder))
        except Failed as why:
            print(f"{kind.name} is left out: {why}.", file=sys.stderr)
    return programs


def measure(binary, idle):
    """All figures, by the names peers_PROGRAM_ROW."""
    figures, began_in = {}, os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        programs = installed(binary, folder)
        synced = sync_ms(folder)
        try:
            figures |= in_turns(programs, "start_ms", 20, lambda program: [program.took(["--version"])])
            figures |= in_turns(programs, "ask_ms", 15, lambda program: [program.ask_ms()])
            for program in programs:
                figures[f"peers_{program.name}_program_mib"] = os.path.getsize(program.file) / 2**20
                if program.model.bodies:
                    figures[f"peers_{program.name}_first_request_bytes"] = len(program.model.bodies[0])
            figures |= conversations(programs, "cheap", "gap_ms", "eight_ms")
            figures |= in_turns(programs, "ready_ms", 7, lambda program: [program.ready_ms()])
            figures |= memory(programs, idle)
            # Last, because Kai's first request would be longer with the tool for commands, which is off by default.
            for program in programs:
                tried(program, "command_gap_ms", lambda p: p.allow_commands())
            figures |= conversations(programs, "command", "command_gap_ms", "eight_commands_ms")
            figures["peers_disk_sync_ms"] = statistics.median(synced + sync_ms(folder))
        finally:
            os.chdir(began_in)
    return figures


def table(figures, binary):
    """The figures as Markdown, with the machine and the versions above."""
    disk = f"A small write took {figures['peers_disk_sync_ms']:.1f} ms to reach the disk."
    lines = [f"{machine(binary)} {disk}", "", "| | " + " | ".join(NAMES) + " | goose ÷ kai | codex ÷ kai |", "|---" + "|--:" * 5 + "|"]
    for row, title in ROWS.items():
        values = [figures.get(f"peers_{name}_{row}") for name in NAMES]
        whole = row == "first_request_bytes"
        cells = ["–" if value is None else f"{value:,.0f}" if whole or value >= 100 else f"{value:.1f}" for value in values]
        cells += ["–" if value is None or not values[0] else f"{value / values[0]:.1f}" for value in values[1:]]
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine(binary):
    version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.strip()
    debian = pathlib.Path("/etc/debian_version")
    system = f"Debian {debian.read_text().strip()}" if debian.exists() else platform.system()
    kernel = ".".join(platform.release().split(".")[:2])
    peers = ", ".join(f"{name} {package.rsplit('@', 1)[1]}" for name, (package, _) in PACKAGES.items())
    return (f"{datetime.date.today()}, {os.cpu_count()} cores ({platform.machine()}), Linux {kernel}, {system}, "
            f"load {os.getloadavg()[2]:.1f} over the last 15 minutes; {version}, {peers}.")
