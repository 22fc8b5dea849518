# What the rules find, and what they leave alone.
import asyncio
import contextlib
import marshal
import os
import pickle
import shelve
import subprocess
from contextlib import suppress

import yaml


def bad(line, data):
    # ruleid: shell-line
    subprocess.run(line, shell=True)
    # ruleid: shell-line
    os.system(line)
    # ruleid: shell-line
    os.popen(line)
    # ruleid: shell-line
    subprocess.getoutput(line)
    # ruleid: shell-line
    subprocess.getstatusoutput(line)
    # ruleid: shell-line
    asyncio.create_subprocess_shell(line)
    # ruleid: data-that-can-run
    eval(data)
    # ruleid: data-that-can-run
    exec(data)
    # ruleid: data-that-can-run
    pickle.load(data)
    # ruleid: data-that-can-run
    pickle.loads(data)
    # ruleid: data-that-can-run
    marshal.load(data)
    # ruleid: data-that-can-run
    marshal.loads(data)
    # ruleid: data-that-can-run
    shelve.open(data)
    # ruleid: data-that-can-run
    yaml.unsafe_load(data)
    # ruleid: data-that-can-run
    yaml.load(data)
    # ruleid: data-that-can-run
    yaml.load(data, Loader=yaml.Loader)


def silent(work):
    # ruleid: swallowed-exception
    try:
        work()
    except Exception:
        pass
    # ruleid: swallowed-exception
    try:
        work()
    except Exception as error:
        pass
    # ruleid: swallowed-exception
    try:
        work()
    except BaseException:
        pass
    # ruleid: swallowed-exception
    try:
        work()
    except:
        pass
    # ruleid: swallowed-exception
    with contextlib.suppress(Exception):
        work()
    # ruleid: swallowed-exception
    with suppress(BaseException):
        work()


def good(words, data, work):
    # ok: shell-line
    subprocess.run(words, check=True)
    # ok: data-that-can-run
    yaml.safe_load(data)
    # ok: data-that-can-run
    yaml.load(data, Loader=yaml.SafeLoader)
    # ok: swallowed-exception
    with suppress(FileNotFoundError):
        work()
    # ok: swallowed-exception
    try:
        work()
    except ValueError:
        pass
    # ok: swallowed-exception
    try:
        work()
    except Exception as error:
        log.warning("work_failed", error=type(error).__name__)
