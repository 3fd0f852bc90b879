"""Addresses of pages for those who read a mail: they begin with the site's, which the deployment says."""

from django.urls import NoReverseMatch, reverse

from automation.conf import load


def page(name: str, *args: object) -> str:
    """The whole address of a page of the automation; "" where the site's isn't set, or the host serves no such page."""
    root = load().site.rstrip("/")
    if not root:
        return ""
    try:
        return root + reverse(f"automation:{name}", args=args)
    except NoReverseMatch:
        return ""
