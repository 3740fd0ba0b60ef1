"""Owns the words that stand for one another in tool catalogs.

Above: queries. Below: `analysis`. Refuses to know: weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from toolcell.catalog.search.analysis import stem

_GROUPS: Final = """
create add new make insert
delete remove drop erase destroy
list show enumerate browse
get fetch retrieve read obtain view
update edit modify change patch
search find query lookup look
send post
run execute start launch
stop kill terminate cancel end
download save
message chat dm
repo repository
photo image picture
movie film
directory folder
document doc file
email mail
schedule calendar appointment
schedule reminder
price cost quote
weather forecast climate temperature
translate translation
company business
buy purchase order
car vehicle
convert transform
check verify validate
compute calculate
user account member
song music track
hotel accommodation lodging
flight airline
restaurant food
news headline article
stock share equity
phone telephone mobile
website webpage url site
internet web google
screenshot capture
location place address
route direction
merge combine join
generate produce
"""


@lru_cache(maxsize=1)
def synonyms() -> dict[str, tuple[str, ...]]:
    """Return the stems that stand for each stem, in order of the groups."""
    found: dict[str, list[str]] = {}
    for group in _GROUPS.strip().splitlines():
        stems = [stem(word) for word in group.split()]
        for one in stems:
            known = found.setdefault(one, [])
            known.extend(other for other in stems if other != one and other not in known)
    return {one: tuple(others) for one, others in found.items()}
