"""Checks of answers of the SDK."""


def good(response):
    """Checks for success, and returns the items."""
    assert response.status_code == 200, response.errors
    items = getattr(response, "items", None)
    return list(items) if items is not None else []


def one(response):
    """Checks for success, and returns the only item."""
    (item,) = good(response)
    return item


def names(response):
    """Checks for success, and returns the names of the items."""
    return [item.name for item in good(response)]


def refused(response, *messages):
    """Checks for a refusal with exactly these messages, because some clients compare them."""
    assert response.status_code == 400, response
    assert [error.message for error in response.errors] == list(messages)
    return "; ".join(messages)
