"""The page in a real browser: what is typed is translated, arcs are dragged, and it works with the
keyboard, on a phone, in the dark, from right to left and without a server."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from serving import serving
from tiny import analyze, write_lines

sync_api = pytest.importorskip("playwright.sync_api")
axe = pytest.importorskip("axe_playwright_python.sync_playwright")

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
if not CHROMIUM:
    pytest.skip("there is no Chromium", allow_module_level=True)

pytestmark = pytest.mark.journey

SENTENCE = "A dog sees the cats."
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
    "--disable-component-update",
]


@pytest.fixture(scope="module")
def address(served):
    with serving(served) as (client, _):
        yield str(client.base_url)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser, address):
    """Open the page in a window of its own; nothing may go wrong in its script, and nothing is
    asked of other servers."""
    opened, problems = [], []

    def make(state="", **options):
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.extend(foreign(request.url)))
        page.goto(f"{address}/{state}")
        opened.append(context)
        return page

    def foreign(url):
        return [] if url.startswith((address, "data:", "blob:")) else [url]

    yield make
    for context in opened:
        context.close()
    assert not problems


def typed(page, text=SENTENCE):
    page.fill("#text", text)
    page.wait_for_selector("#runs .run:not([hidden]) .translation span")
    settled(page)


def settled(page):
    """Wait until all answers are shown."""
    page.wait_for_selector("#runs:not(:has([aria-busy=true]))")


def heads(page):
    """Read the tree from the descriptions of its words."""
    labels = page.locator("[data-word]").evaluate_all(
        "groups => groups.map(group => group.getAttribute('aria-label'))"
    )
    words = [label.partition(": ")[0] for label in labels]
    parents = [re.search(r" of (.+?)(, [< \d]+ %)?$", label) for label in labels]
    return {
        word: parent[1] if parent else None for word, parent in zip(words, parents, strict=True)
    }


def middle(page, word):
    box = page.locator(f"[data-word='{word}'] .word").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, word, *places):
    page.mouse.move(*middle(page, word))
    page.mouse.down()
    for place in places:
        page.mouse.move(*place, steps=3)
    page.mouse.up()
    settled(page)


def test_what_is_typed_is_translated_by_both_runs(open_page, served):
    page = open_page()
    assert page.get_by_text("Translations appear as you type.").is_visible()
    typed(page)
    for number, run in enumerate(served):
        [expected] = run.translator.translate([SENTENCE])
        shown = page.locator("#runs .run").nth(number)
        words = shown.locator(".translation [data-target]").all_text_contents()
        assert words == expected.text.split()
        assert run.name in shown.locator("h2").text_content()
    assert "reads no trees" in page.locator("#runs .run").nth(1).text_content()
    assert heads(page)["A"] == "dog"
    page.fill("#text", "")
    page.wait_for_selector("#shown", state="hidden")


def test_an_arc_that_is_dragged_changes_the_tree_and_what_changed_is_marked(open_page, served):
    page = open_page()
    typed(page)
    before = heads(page)
    place = list(before).index("cats")
    drag(page, place, middle(page, 0), middle(page, 1))
    after = heads(page)
    assert (after["cats"], before["cats"]) == ("dog", "sees")
    assert page.locator("#tree").input_value() == "own"
    assert page.locator(".changed[data-word]").count() >= 1
    state = parse_qs(page.url.partition("#")[2])
    numbers = list(map(int, state["heads"][0].split(",")))
    found = served[0].variety(5, "de").explain(SENTENCE, numbers)
    shown = page.locator("#runs .run").first
    assert shown.locator(".translation [data-target]").all_text_contents() == list(found.words)
    old = served[0].translator.explain(SENTENCE)
    marked = shown.locator(".translation mark").all_text_contents()
    assert bool(marked) == (old.translation.text != found.translation.text)
    # the others are words of the old translation, in their order
    rest = iter(old.words)
    assert all(word in rest for word in shown.locator("span[data-target]").all_text_contents())
    # above the words there is the root
    x, y = middle(page, place)
    drag(page, place, (x, y - 60))
    assert [word for word, parent in heads(page).items() if parent is None] == ["cats"]
    # the state is in the address, and another window shows it
    again = open_page(f"#{page.url.partition('#')[2]}")
    again.wait_for_selector("[data-word]")
    settled(again)
    assert heads(again) == heads(page)
    page.click("#reset")
    settled(page)
    assert heads(page) == before


def test_a_parent_is_chosen_by_the_keyboard(open_page):
    page = open_page()
    typed(page)
    page.focus("[data-word='0']")
    page.keyboard.press("ArrowRight")
    assert page.locator(":focus").get_attribute("data-word") == "1"
    page.keyboard.press("Enter")
    assert page.locator(":focus").get_attribute("id") == "parent"
    page.select_option("#parent", label="5 cats")
    settled(page)
    assert heads(page)["dog"] == "cats"


def test_trees_attention_and_alignment_can_be_looked_at(open_page):
    page = open_page()
    typed(page)
    page.select_option("#tree", "left")
    settled(page)
    assert list(heads(page).values()) == ["dog", "sees", "the", "cats", ".", None]
    page.select_option("#head", index=1)
    assert page.locator(".attention path").count() > 3
    target = page.locator("#runs .run").first.locator("[data-target]").first
    target.hover()
    assert page.locator(".tree .aligned").count() == 1
    page.locator(".tree .aligned .area").hover()
    assert "aligned" in target.get_attribute("class")
    for button, content in {"#save-svg": "<style>", "#save-conllu": "# text = A dog"}.items():
        with page.expect_download() as saved:
            page.click(button)
        assert content in Path(saved.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "width", "scheme"),
    [
        (SENTENCE, 375, "dark"),
        (SENTENCE, 1280, "light"),
        ("שלום עולם קטן", 1280, "dark"),
        ("猫が本を読む", 375, "light"),
        ("dog " * 60, 375, "light"),
        ("dog " * 60, 1280, "dark"),
    ],
)
def test_it_fits_every_window_and_can_be_read(text, width, scheme, open_page):
    page = open_page(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    typed(page, text)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    colours = page.evaluate(
        "[...document.querySelectorAll('p, .tree text, li')].map(one => getComputedStyle(one))"
        ".map(style => style.fill == 'rgb(0, 0, 0)' ? style.color : style.fill)"
    )
    problems = axe.Axe().run(page)
    assert problems.violations_count == 0, problems.generate_report()
    bright = [sum(map(int, re.findall(r"\d+", colour)[:3])) > 380 for colour in set(colours)]
    assert all(bright) == (scheme == "dark")
    if text.startswith("ש"):
        places = [middle(page, word)[0] for word in range(3)]
        assert places == sorted(places, reverse=True)


def test_a_server_that_refuses_or_is_gone_is_named(open_page, served):
    page = open_page()
    page.route("**/explain", lambda route: route.abort())
    page.fill("#text", SENTENCE)
    page.wait_for_selector("#error:not([hidden])")
    assert page.locator("#error").text_content()
    with serving(served[:1], api_key="secret") as (client, _):
        page = page.context.browser.new_page()
        page.goto(str(client.base_url))
        page.fill("#text", SENTENCE)
        page.get_by_text("The key is missing or wrong.").wait_for()
        page.fill("#key", "secret")
        page.keyboard.press("Tab")
        page.wait_for_selector(".translation [data-target]")
        page.close()


def test_a_report_shows_cards_on_a_phone_whose_first_lines_decide(browser, tmp_path):
    good = write_lines(tmp_path / "good", ["Ein Hund sieht die Katzen."] * 12)
    poor = write_lines(tmp_path / "poor", ["Ein Hund schläft."] * 12)
    compared = ("--hypotheses", poor, good, "--references", good, "--names", "poor", "good")
    analyze("--by-length", *compared, "--side", "target", "--html", tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 375, "height": 760})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert page.locator("h1 + section > p").first.inner_text().startswith("2 of 2 differences")
    cells = page.locator("tbody tr").nth(1).locator("td:visible").all()
    cells.sort(key=lambda cell: cell.bounding_box()["y"])
    titles = [cell.get_attribute("data-title") for cell in cells]
    assert titles[:4] == ["system", "difference", "95 % interval", "p (Holm)"]
    assert not axe.Axe().run(page).response["violations"]
    page.set_viewport_size({"width": 1280, "height": 800})
    figure, table = (page.locator(name).first.bounding_box() for name in ("img", "main"))
    assert figure["width"] > 0.9 * table["width"]
    page.close()
