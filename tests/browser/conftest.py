"""One headless Chromium for all tests; they are skipped where there is none."""

import os
import shutil

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    path = os.environ.get("BGNLM_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium, or BGNLM_CHROMIUM=/path/to/chromium")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


class Sight:
    """A page in the browser, with what it complained about, asked for and popped up."""

    def __init__(self, browser, path, width):
        self.page = browser.new_page(viewport={"width": width, "height": 800})
        self.complaints, self.requests, self.dialogs = [], [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", self._dismiss)
        self.page.goto(path.as_uri())

    def _dismiss(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def set(self, column, value):
        """Set an input and wait until the page has computed."""
        self.page.evaluate(
            """([column, value]) => new Promise(done => {
              const { columns, latent } = JSON.parse(document.getElementById("bgnlm-model").textContent);
              const told = one => one.dataset.kind === "latent"
                ? { name: latent[one.dataset.place].column, levels: latent[one.dataset.place].values }
                : { name: columns[one.dataset.place].name,
                    levels: [columns[one.dataset.place].reference, ...columns[one.dataset.place].levels] };
              const all = Array.from(document.querySelectorAll(".control[data-place]"));
              const control = all.find(one => told(one).name === column);
              if (!control) { done(); return; }
              const place = value === null ? "missing" : typeof value === "boolean" ? Number(value)
                : told(control).levels.indexOf(value);
              const [box, hole] = ["number", "checkbox"].map(kind => control.querySelector(`input[type=${kind}]`));
              const select = control.querySelector("select");
              if (hole) hole.checked = value === null;
              if (box) { if (value !== null) box.value = value; }
              else select.value = place;
              (box || select).dispatchEvent(new Event("input", { bubbles: true }));
              requestAnimationFrame(() => requestAnimationFrame(done));
            })""",
            [column, value],
        )


@pytest.fixture
def see(browser, tmp_path):
    """Opens a page."""
    opened = []

    def see(html, width=1280):
        path = tmp_path / f"page-{len(opened)}.html"
        path.write_text(html, encoding="utf-8")
        opened.append(Sight(browser, path, width))
        return opened[-1]

    yield see
    for sight in opened:
        sight.page.close()
