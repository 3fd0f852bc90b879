"""Pictures of every page for people to look at: .shots/index.html. Nothing here fails because of how a page looks."""

from pathlib import Path

import pytest

from tests.e2e import scene as scenes

FOLDER = Path(__file__).parents[2] / ".shots"
LOOKS = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}},
}
STATES = {"empty": scenes.empty, "filled": scenes.filled, "paused": lambda: scenes.filled(paused=True)}


@pytest.mark.long
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("state", STATES)
def test_pictures_of_every_page(open_browser, state, look):
    scene = STATES[state]()
    page = open_browser(scene, expected=(422,), **LOOKS[look])
    FOLDER.mkdir(exist_ok=True)
    for name, address in scene.pages.items():
        page.goto(address)
        path = FOLDER / f"{name.replace(' ', '-')}-{state}-{look}.png"
        page.screenshot(path=path, full_page=True, animations="disabled")
    pictures = "".join(f'<p>{path.stem}</p><img src="{path.name}">' for path in sorted(FOLDER.glob("*.png")))
    (FOLDER / "index.html").write_text(f"<!DOCTYPE html><title>Pictures</title>{pictures}")
