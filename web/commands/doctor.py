"""`rejoinder doctor`: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import httpx
import typer
from rich.markup import escape
from rich.table import Table

from pipeline import places
from pipeline.addresses import in_url, listens_here_only
from pipeline.config import Settings
from pipeline.loading import preparation
from pipeline.models import catalogue
from pipeline.telemetry.latency_log import WHERE_ELSE
from web.options import with_settings
from web.output import console, print_json

INSTRUCTION_SETS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx_vnni",
    "amx_int8",
    "asimd",
    "asimddp",
    "i8mm",
    "sve",
)
TEST_PROGRAMS = {
    "chromium": "chromium",
    "espeak-ng": "espeak-ng",
    "sox": "sox",
    "strace": "strace",
}
TEST_RECORDINGS = Path("/usr/share/pocketsphinx/test/data")
ROOM_FOR_LOGS_MB = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `bad` stops the service from working, `note` makes it slower or less."""

    what: str
    state: Literal["good", "note", "bad"]
    detail: str
    advice: str = ""


@with_settings
def doctor(
    settings: Settings,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    with console.status("looking at this machine"):
        findings = list(examine(settings))
    if as_json:
        print_json({"works": works(findings), "findings": [asdict(finding) for finding in findings]})
    else:
        _print(findings)
    if not works(findings):
        raise typer.Exit(1)


def works(findings: list[Finding]) -> bool:
    """Whether nothing stops the service from working."""
    return all(finding.state != "bad" for finding in findings)


def examine(settings: Settings) -> Iterator[Finding]:
    """Look at everything, in the order in which a newcomer needs it."""
    checks: tuple[Callable[[Settings], Finding], ...] = (
        processor,
        accelerator,
        compiler,
        kernel,
        models,
        disk,
        port,
        microphone,
        test_programs,
    )
    for check in checks:
        try:
            yield check(settings)
        except OSError as error:
            yield Finding(check.__name__, "bad", places.in_words(error))


def processor(settings: Settings) -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    sets = [name for name in INSTRUCTION_SETS if name in _processor_flags()]
    detail = f"{platform.machine()}, {cores} cores, {' '.join(sets) or 'instruction sets unknown'}"
    if cores < settings.llm_threads:
        return Finding(
            "processor", "note", detail, f"set llm_threads to {cores}: it is {settings.llm_threads}"
        )
    if not {"avx512_vnni", "avx_vnni", "asimddp"} & set(sets):
        return Finding("processor", "note", detail, "no int8 dot products: the language model will be slower")
    return Finding("processor", "good", detail)


def accelerator(settings: Settings) -> Finding:
    import torch

    if torch.cuda.is_available():
        return Finding("GPU", "good", torch.cuda.get_device_name(0))
    build = "" if torch.version.cuda else "; this torch is a CPU build"
    return Finding("GPU", "good", f"none found (none is needed{build})")


def compiler(settings: Settings) -> Finding:
    found = next(
        (name for name in (os.environ.get("CXX"), "c++", "g++", "clang++") if name and shutil.which(name)), ""
    )
    if not found:
        return Finding(
            "C++ compiler", "note", "none", "install g++ (Debian: build-essential) for the fast kernel"
        )
    run = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    return Finding("C++ compiler", "good", run.stdout.partition("\n")[0] or found)


def kernel(settings: Settings) -> Finding:
    if preparation.kernel_built():
        return Finding("kernel", "good", "built")
    return Finding(
        "kernel", "note", "not built yet", "`rejoinder setup` builds it; without it replies are slower"
    )


def models(settings: Settings) -> Finding:
    wanted = preparation.models(settings)
    bad = []
    for artifact in wanted:
        bad += [f"{file} of {artifact.name} is {state}" for file, state in _unverified(artifact)]
    if bad:
        return Finding(
            "models", "bad", "; ".join(bad), "`rejoinder models verify`, then `rejoinder models pull`"
        )
    return Finding("models", "good", f"{', '.join(artifact.name for artifact in wanted)}: here, hashes right")


def disk(settings: Settings) -> Finding:
    folders = {"models": catalogue.cache(), "latency log": settings.latency_log.parent}
    free = {what: shutil.disk_usage(_existing(folder)).free // 10**6 for what, folder in folders.items()}
    missing = sum(a.size for a in preparation.models(settings) if a.missing()) // 10**6
    detail = ", ".join(f"{megabytes:,} MB free for the {what}" for what, megabytes in free.items())
    if free["models"] < 2 * missing:
        return Finding(
            "disk", "bad", detail, f"{2 * missing:,} MB are needed for the models; REJOINDER_CACHE moves them"
        )
    if missing and not places.writable(folders["models"]):
        return Finding("disk", "bad", f"{folders['models']} cannot be written to", "REJOINDER_CACHE moves it")
    if places.without_home(settings.latency_log) or not places.writable(folders["latency log"]):
        return Finding(
            "disk", "bad", f"the latency log cannot be kept in {folders['latency log']}", WHERE_ELSE
        )
    if free["latency log"] < ROOM_FOR_LOGS_MB:
        return Finding(
            "disk", "note", detail, "turns are not logged when it is full; latency_log moves the log"
        )
    return Finding("disk", "good", detail)


def port(settings: Settings) -> Finding:
    address = in_url(settings.host, settings.port)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.create_server((settings.host, settings.port), family=family):
            return Finding("port", "good", f"{address} is free")
    except OSError as error:
        if _answers_health(settings):
            return Finding("port", "good", f"{address}: a rejoinder is serving there")
        return Finding(
            "port", "bad", f"{address}: {error.strerror}", "choose another: --port, or 0 for any free one"
        )


def microphone(settings: Settings) -> Finding:
    page = f"http://{in_url(settings.host, settings.port)}/"
    if listens_here_only(settings.host):
        return Finding(
            "microphone page", "good", f"{page} (browsers allow the microphone on this machine's own pages)"
        )
    return Finding(
        "microphone page",
        "note",
        page,
        "browsers give pages of other machines the microphone over https only: put a TLS proxy in front, "
        "or forward the port (ssh -L 8765:localhost:8765)",
    )


def test_programs(settings: Settings) -> Finding:
    missing = [package for program, package in TEST_PROGRAMS.items() if not shutil.which(program)]
    if not TEST_RECORDINGS.is_dir():
        missing.append("pocketsphinx-testdata")
    if missing:
        return Finding(
            "for `make test`", "note", f"missing: {' '.join(missing)}", f"apt-get install {' '.join(missing)}"
        )
    return Finding("for `make test`", "good", "browser, recordings and sound tools are here")


def _processor_flags() -> set[str]:
    """Instruction sets as Linux names them; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return set(flags.partition(":")[2].split())


def _unverified(artifact: catalogue.Artifact) -> list[tuple[str, catalogue.State]]:
    states = catalogue.verify(artifact, remove=False)
    return [(file, state) for file, state in states.items() if state != "verified"]


def _existing(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(parent for parent in (folder, *folder.parents) if places.exists(parent))


def _answers_health(settings: Settings) -> bool:
    try:
        address = in_url(settings.host, settings.port)
        return httpx.get(f"http://{address}/healthz", timeout=1.0, trust_env=False).is_success
    except (httpx.HTTPError, httpx.InvalidURL):
        return False


def _print(findings: list[Finding]) -> None:
    marks = {"good": "[green]✓[/]", "note": "[yellow]![/]", "bad": "[red]✗[/]"}
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        advice = f"\n[italic]{escape(finding.advice)}[/]" if finding.advice else ""
        table.add_row(marks[finding.state], f"[bold]{finding.what}[/]", escape(finding.detail) + advice)
    console.print(table)
