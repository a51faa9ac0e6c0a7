"""YourPart in Chromium: two rows of one word, with and without the reader's part."""

from figures import make_examined
from harness import check_axe, check_fits, each_look

from transformer_lib.widgets import YourPart


def shares(page, which):
    line = page.locator(".afm-tokens").nth(which)
    return line.locator(".afm-token-chip").evaluate_all(
        "all => all.map((one) => Number(one.style.getPropertyValue('--afm-share')))"
    )


@each_look
def test_a_click_on_a_word_shows_both_rows(open_page, theme, width):
    before, after = make_examined()
    page = open_page(YourPart(before, after, part="apply_rotary"), theme=theme, width=width)
    for word in (len(before.words) - 1, 4):
        page.locator(".afm-tokens").nth(1).locator("button").nth(word).click()
        for which, one in enumerate((before, after)):
            found = shares(page, which)
            assert max(abs(a - b) for a, b in zip(found, one.weights[word], strict=True)) < 1e-4
    said = page.locator(".afm-reading").inner_text()
    assert f"In block 2, head 1, {before.words[4]} looks most at" in said
    assert f"{before.right} of 8, then {after.right} of 8" in said
    assert page.get_by_text("with the library’s apply_rotary").count() == 1
    assert page.get_by_text("with not_at_all", exact=True).count() == 1
    assert "; with not_at_all, " in said
    check_axe(page)
    page.evaluate(
        """document.querySelector(".afm-your-part").afmYours.show({
          parts: [{ name: "apply_rotary", called: "mine" }], weights: new Float32Array(10_000),
        })"""
    )
    assert page.get_by_role("list", name="The story, with mine", exact=True).count() == 1
    check_fits(page)
