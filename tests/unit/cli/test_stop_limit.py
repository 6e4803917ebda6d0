"""A process that was asked to end ends, whatever it waits for."""

import signal
import subprocess
import sys

import pytest

WAITS_FOR = {
    "a task that heeds no cancellation": """
async def deaf():
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            print("deaf", flush=True)

async def block():
    task = asyncio.create_task(deaf(), name="the culprit")
    with on_signal(task.cancel, 0.2):
        print("ready", flush=True)
        await asyncio.wait([task])
""",
    "a loop that is blocked": """
def stop():
    print("blocked", flush=True)
    time.sleep(600)

async def block():
    asyncio.current_task().set_name("the culprit")
    with on_signal(stop, 0.2):
        print("ready", flush=True)
        await asyncio.sleep(600)
""",
    "a thread, when all else has ended": """
async def block():
    stopping = asyncio.Event()
    threading.Thread(target=time.sleep, args=(600,), name="the culprit").start()
    with on_signal(stopping.set, 0.2):
        print("ready", flush=True)
        await stopping.wait()
""",
}


@pytest.mark.parametrize("what", WAITS_FOR)
def test_a_process_ends_at_the_limit_of_its_stop_and_says_what_it_waited_for(what: str) -> None:
    begin = "import asyncio, threading, time\nfrom hascheduler.lifecycle import on_signal\n"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{begin}{WAITS_FOR[what]}\nasyncio.run(block())"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    [overran] = [line for line in said.splitlines() if "stop_overran" in line]
    assert "the culprit" in overran


def test_a_process_that_ends_in_time_is_left_alone() -> None:
    program = """
import asyncio, os, signal
from hascheduler.lifecycle import on_signal

async def block():
    stopping = asyncio.Event()
    with on_signal(stopping.set, 600):
        os.kill(os.getpid(), signal.SIGTERM)
        await stopping.wait()

asyncio.run(block())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "stop_overran" in ended.stdout) == (0, False)
