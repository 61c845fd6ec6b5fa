"""A parser for the web pages that synmt writes."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = '<script>alert("1")</script> & </p> {title} \u202e'
EMPTY_ELEMENTS = {"meta", "img"}


class Reader(HTMLParser):
    """Parses a page, and checks that all elements are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.classes, self.attributes = [], [], [], []
        self.text = {}
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self.classes.append(dict(attrs).get("class", ""))
        if tag not in EMPTY_ELEMENTS:
            self.open.append((tag, dict(attrs).get("class", "")))
            self.text.setdefault(self.open[-1], []).append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for place, _ in enumerate(self.open):
            if not any(name == "small" for name, _ in self.open[place + 1 :]):
                self.text[self.open[place]][-1] += data


def luminance(colour):
    """Compute the relative luminance of WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """Compute the contrast ratio of WCAG 2.2 from relative luminances."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
