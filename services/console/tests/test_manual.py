"""The manual: every page is served to everybody, every link leads somewhere, and nothing in it runs."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

from console import manual
from console.manual_markdown import render
from console.manual_pages import IN_ORDER

ROOT = Path(__file__).parents[3]
LINK = re.compile(r"\]\(([^)\s]+)\)")
PICTURE = re.compile(r'<source [^>]*srcset="([^"]+)"><img [^>]*src="([^"]+)"')
OTHER_PAGES = ("/docs", "/console")
ACTIVE = re.compile(r"<(script|style|iframe|object|form)\b|\s(style|on\w+)=|javascript:", re.IGNORECASE)
INSTALLED = (
    "import sys; sys.path.insert(0, sys.argv[1]); from console import manual; print(manual.ROOT, len(manual.PAGES))"
)


@pytest.fixture(scope="module")
def texts():
    return {page: manual.text(page) for page in manual.PAGES}


def ids(text):
    return set(re.findall(r' id="([^"]+)"', text.html))


def test_every_link_leads_to_a_page_and_to_a_heading_of_it(texts):
    wrong = []
    for page, text in texts.items():
        for address in re.findall(r'<a href="([^"]+)"', text.html):
            parts = urlsplit(address)
            target = manual.BY_ADDRESS.get(parts.path) if parts.path else page
            if parts.scheme or parts.path in OTHER_PAGES:
                continue
            if target is None or (parts.fragment and parts.fragment not in ids(texts[target])):
                wrong.append((page.file, address))
    assert wrong == []


def test_what_a_page_links_to_is_in_the_repository(texts):
    links = [(page, link) for page in manual.PAGES for link in LINK.findall(without_code(manual.source(page)))]
    files = [(page, urlsplit(link).path) for page, link in links if not urlsplit(link).scheme and link[0] != "#"]

    assert len(files) > 50
    assert [(page.file, path) for page, path in files if not (ROOT / page.file).parent.joinpath(path).exists()] == []


def without_code(text):
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def test_no_page_has_anything_that_runs_or_styles_itself(texts):
    assert [(page.file, found[0]) for page, text in texts.items() if (found := ACTIVE.search(text.html))] == []


def test_raw_html_and_addresses_that_run_stay_text():
    hostile = (
        '<img src=x onerror=alert(1)>\n\n[x](javascript:alert(1)) [y](<data:text/html,z>)\n\n```"><script>\n<b>\n```'
    )
    html = render(hostile, lambda address: address, lambda address, about: "").html

    assert "<img" not in html and "<b>" not in html and "<script" not in html and "href" not in html


def test_a_drawing_is_in_the_page_without_a_style_of_its_own(texts):
    concepts = texts[manual.BY_ADDRESS["/manual/concepts"]].html

    assert concepts.count('<svg class="drawing"') == 2 and "<style" not in concepts


def test_pictures_are_small_and_all_of_them_are_shown(texts):
    shown = "".join(text.html for text in texts.values())

    assert [address for address in manual.IMAGES if f'src="{address}"' not in shown] == []
    assert sum(file.stat().st_size for file in manual.IMAGES.values()) < 3_000_000
    assert all(urlsplit(src).path in manual.IMAGES for src in re.findall(r'<img [^>]*src="([^"]+)"', shown))


def test_a_picture_keeps_its_place_while_it_loads(texts):
    shown = "".join(text.html for text in texts.values())
    images = re.findall(r"<img [^>]+>", shown)

    assert len(images) >= len(manual.IMAGES)
    assert [image for image in images if not re.search(r' width="\d{3,4}" height="\d{3,4}"', image)] == []


def test_code_hosts_show_the_dark_one_of_the_same_picture():
    files = [page.file for page in manual.PAGES] + ["README.md"]
    shown = [found for file in files for found in PICTURE.findall((ROOT / file).read_text())]

    assert len(shown) > 50
    assert [(dark, light) for dark, light in shown if dark != light.replace(".webp", "-dark.webp")] == []


def test_every_word_of_the_search_leads_to_a_heading(texts):
    rows = json.loads(manual.search_index())

    assert {row["page"] for row in rows} == {page.title for page in IN_ORDER}
    for row in rows:
        parts = urlsplit(row["at"])
        assert not parts.fragment or parts.fragment in ids(texts[manual.BY_ADDRESS[parts.path]])
    [found] = [row for row in rows if row["at"] == "/manual/controls-and-limits#stop-everything"]
    assert "tip halt" in found["text"] and found["title"] == "Stop everything"


def test_everybody_reads_every_page(stack):
    for page in manual.PAGES:
        answer = requests.get(stack.base + page.address, timeout=60)
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8"), page
        assert "style-src 'self'" in answer.headers["Content-Security-Policy"]
        assert answer.text.count("<h1") == 1, page
    for address in (*manual.IMAGES, manual.SEARCH):
        assert requests.get(stack.base + address, timeout=60).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/manual/",
        "/manual/nothing",
        "/manual/quickstart.md",
        "/manual/reference",
        "/manual/../pyproject.toml",
        "/manual/%2e%2e/%2e%2e/pyproject.toml",
        "/manual/images/../README.md",
        "/manual/images/%2Fetc%2Fpasswd",
        "/manual/decisions/0043-the-console.md",
        "/manual/%00",
    ],
)
def test_whatever_is_no_page_is_not_found(stack, path):
    request = requests.Request("GET", stack.base).prepare()
    request.url = stack.base + path
    with requests.Session() as session:
        assert session.send(request, timeout=60).status_code == 404


def test_a_theme_is_chosen_on_a_page_of_the_manual(stack):
    form = {"theme": "dark", "next": "/manual/quickstart"}
    answer = requests.post(f"{stack.base}/console/theme", data=form, timeout=60)

    assert answer.url.endswith("/manual/quickstart") and 'data-theme="dark"' in answer.text


def test_the_wheel_carries_every_page(tmp_path):
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([sys.executable, *words, str(ROOT / "services" / "console")], check=True, capture_output=True)
    [wheel] = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as content:
        content.extractall(tmp_path / "installed")

    done = subprocess.run(
        [sys.executable, "-c", INSTALLED, tmp_path / "installed"], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == [str(tmp_path / "installed/console/manual_files"), str(len(manual.PAGES))]
    carried = tmp_path / "installed" / "console" / "manual_files"
    assert [page.file for page in manual.PAGES if not (carried / page.file).is_file()] == []
