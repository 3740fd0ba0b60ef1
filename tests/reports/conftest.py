"""The executors and guest APIs the reports are proven on."""

import pytest

GUESTS = [("quickjs", "catalog"), ("quickjs", "tools")]
NODE = ("node", "catalog")


@pytest.fixture(params=GUESTS, ids="-".join)
def guest(request):
    """An executor and a guest API."""
    return request.param


@pytest.fixture(params=[each for each in GUESTS if each[1] == "catalog"], ids="-".join)
def catalog_guest(request):
    """An executor with the catalog API, for what only that API has."""
    return request.param


@pytest.fixture(params=[*GUESTS, NODE], ids="-".join)
def any_guest(request):
    """Node as well, for what an executor could do differently."""
    return request.param
