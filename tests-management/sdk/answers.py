"""What answers of the SDK hold."""


def good(response):
    """The items of a success."""
    assert response.status_code == 200, response.errors
    items = getattr(response, "items", None)
    return list(items) if items is not None else []


def one(response):
    """The one item of a success."""
    (item,) = good(response)
    return item


def names(response):
    """The names of the items of a success."""
    return [item.name for item in good(response)]


def refused(response, *messages):
    """A refusal for these reasons: whole messages, as some clients compare them."""
    assert response.status_code == 400, response
    assert [error.message for error in response.errors] == list(messages)
    return "; ".join(messages)
