"""A drawing as inline SVG that stands alone in a page."""

from __future__ import annotations

import io
import re
import threading
import warnings
from xml.etree import ElementTree as ET

from matplotlib import rc_context
from matplotlib.text import Text

from .basics import Drawing

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_LOCK = threading.Lock()


def svg(drawing: Drawing, ident: str) -> str:
    """A drawing as inline SVG with text alternatives: real text, nothing from outside, ids that start with `ident`.

    Args:
        drawing: what to show.
        ident: letters and digits, unique in the page.

    Returns:
        One `<svg role="img">` element; the same drawing gives the same text.
    """
    for text in drawing.figure.findobj(Text):
        assert isinstance(text, Text)
        text.set_parse_math(False)  # a dollar sign in a name is no formula
    out = io.BytesIO()
    with _LOCK, rc_context({"svg.fonttype": "none", "svg.hashsalt": ident}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # letters that matplotlib's own font lacks are there in the reader's
        drawing.figure.savefig(out, format="svg", metadata={"Date": None}, transparent=True)
    root = ET.fromstring(out.getvalue())
    for child in root.findall(f"{_SVG}metadata"):
        root.remove(child)
    for parent in root.iter():
        for child in [c for c in parent if c.tag == f"{_SVG}style"]:
            parent.remove(child)  # it would speak to the whole page
    used = set(re.findall(r"#([\w-]+)", " ".join(v for e in root.iter() for v in e.attrib.values())))
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        kept = {k: v for k, v in element.attrib.items() if k != "id" or v in used}
        element.attrib = {k.removeprefix(_XLINK): _attribute(k, v, ident) for k, v in kept.items()}
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "class": "plot",
                   "aria-labelledby": f"{ident}-title {ident}-desc"}
    for place, (tag, words) in enumerate((("title", drawing.title), ("desc", drawing.description))):
        label = ET.Element(tag, {"id": f"{ident}-{tag}"})
        label.text = words
        root.insert(place, label)
    return ET.tostring(root, encoding="unicode")


def _attribute(key: str, value: str, ident: str) -> str:
    """An attribute's value with ids of the page, and with coordinates to a hundredth of a point."""
    if key == "id":
        return f"{ident}-{value}"
    if key == f"{_XLINK}href":
        return f"#{ident}-{value.removeprefix('#')}"
    if key in ("d", "x", "y", "transform", "width", "height"):
        return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value)
    return value.replace("url(#", f"url(#{ident}-")
