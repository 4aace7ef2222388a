"""A folder of finished tables, a small table with its raw files, and a web server that has them."""

import gzip
import os
import threading
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from bgnlm.datasets import derive, download
from bgnlm.datasets.recipes import RECIPES, RawFile, Recipe

SMALL_TABLE = """\
split,Rings,Length,Diameter,Height,WholeWeight,ShuckedWeight,VisceraWeight,ShellWeight,Male,Female
train,15,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,1,0
test,7,0.35,0.265,0.09,0.2255,0.0995,0.0485,0.07,0,1
train,9,0.53,0.42,0.135,0.677,0.2565,0.1415,0.21,0,0
"""
SMALL_RAW = {
    "abalone age/abalone.data": (
        b"M,0.455,0.365,0.095,0.514,0.2245,0.101,0.15,15\n"
        b"F,0.35,0.265,0.09,0.2255,0.0995,0.0485,0.07,7\n"
        b"I,0.53,0.42,0.135,0.677,0.2565,0.1415,0.21,9\n"
    ),
    "abalone age/teid.csv": b'"";"x"\n"1";2\n',
}


@pytest.fixture
def finished_table():
    """Text of a finished table by the name of its data set."""
    folder = os.environ.get("BGNLM_DATA")

    def read(name):
        path = Path(folder or "", RECIPES[name].file)
        if not folder or not path.is_file():
            pytest.skip(f"needs {path.name}: set BGNLM_DATA to the folder that holds it")
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()

    return read


@pytest.fixture(params=["abalone.csv", "abalone.csv.gz"])
def small_recipe(request, monkeypatch):
    """In the place of the recipe for abalone, three rows."""
    raw = tuple(RawFile(path, sha256(content).hexdigest()) for path, content in SMALL_RAW.items())
    recipe = Recipe(request.param, sha256(SMALL_TABLE.encode()).hexdigest(), raw, derive.abalone)
    monkeypatch.setitem(RECIPES, "abalone", recipe)
    return recipe


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The cache folder, which does not exist yet."""
    monkeypatch.delenv("BGNLM_DATA", raising=False)
    monkeypatch.setenv("BGNLM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(monkeypatch):
    """A web server in the place of the authors' repository; `files` is what it has, `asked` what it was asked for."""
    state = SimpleNamespace(files=dict(SMALL_RAW), asked=[], promise_more=False, silence=threading.Event())
    state.silence.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = unquote(self.path).removeprefix("/")
            state.asked.append(self.path)
            state.silence.wait(10)
            if path not in state.files:
                self.send_error(404)
                return
            content = state.files[path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(content) + 1000 * state.promise_more))
            self.end_headers()
            with suppress(BrokenPipeError):
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        state.url = f"http://127.0.0.1:{web.server_port}/"
        monkeypatch.setattr(download, "BASE_URL", state.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield state
        state.silence.set()
        web.shutdown()
        thread.join()
