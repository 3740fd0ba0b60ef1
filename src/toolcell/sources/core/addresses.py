"""Owns which network addresses a model may reach: public ones, and what the config allows.

Above: `http_client`. Below: `ipaddress`, the resolver. Refuses to know: HTTP.

A name is resolved once, every address it has is checked, and the connection goes to one of those
very addresses: a name that answers differently the second time (rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import anyio

from toolcell.errors import ConfigError
from toolcell.sources.core.work import failed, refused

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses as text; raises OSError when there are none."""

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""The only IPv6 addresses that are given out to the public; the library calls fec0::/10 global."""
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
"""The first half of an interface identifier whose second half is an IPv4 address (RFC 5214)."""
_ALSO_PRIVATE: Final = tuple(
    ipaddress.ip_network(each)
    for each in (
        "192.0.0.0/24",  # protocol assignments, a part of which the library calls global
        "192.88.99.0/24",  # the former relays of 6to4
        "168.63.129.16/32",  # the host of an Azure machine, with its metadata
        "3fff::/20",  # documentation (RFC 9637), newer than Python 3.11
    )
)


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the system."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class AddressRules:
    """Says which addresses may be connected to.

    Args:
        allow: Addresses, networks (`10.0.0.0/8`) and host names that may be reached although they
            are not public; `*` allows everything.
        resolver: Finds addresses.

    Raises:
        ConfigError: an entry is blank or a network with host bits.
    """

    def __init__(self, allow: Sequence[str] = (), *, resolver: Resolver = system_resolver) -> None:
        self._resolver = resolver
        self._everything = "*" in allow
        self._networks: list[Network] = []
        self._hosts: set[str] = set()
        for entry in allow:
            self._add(entry.strip().lower())

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, all of them checked.

        Raises:
            CallError: it has none, or one that may not be reached.
        """
        try:
            found = await self._resolver(host, port)
        except (OSError, UnicodeError):
            message = f"The host {host!r} cannot be found."
            raise failed(message) from None
        if not found:
            message = f"The host {host!r} has no address."
            raise failed(message)
        if self._everything or host.lower().rstrip(".") in self._hosts:
            return found
        for text in found:
            if not self._may(text):
                message = (
                    f"The host {host!r} is at a private or local address, which may not be "
                    "reached. The operator can allow it in tools.web.fetch.allow."
                )
                raise refused(message)
        return found

    def _may(self, text: str) -> bool:
        try:
            address: Address = ipaddress.ip_address(text.split("%", 1)[0])
        except ValueError:
            return False
        if any(address in network for network in self._networks):
            return True
        return all(_is_public(each) for each in (address, *_inside(address)))

    def _add(self, entry: str) -> None:
        if not entry:
            raise ConfigError("an entry is blank", path="tools.web.fetch.allow")
        try:
            self._networks.append(ipaddress.ip_network(entry))
        except ValueError:
            if "/" in entry:
                message = f"{entry!r} is no network; write it like '10.0.0.0/8'"
                raise ConfigError(message, path="tools.web.fetch.allow") from None
            self._hosts.add(entry.rstrip("."))


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST:
        return address in _NAT64  # judged by the IPv4 address inside
    if any(address in network for network in _ALSO_PRIVATE):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _inside(address: Address) -> Sequence[Address]:
    """Return IPv4 addresses that an IPv6 address stands for or tunnels to."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    last = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    found: list[Address] = [each for each in (address.ipv4_mapped, address.sixtofour) if each]
    if address.teredo is not None:
        found.extend(address.teredo)
    isatap = int(address) >> 32 & 0xFFFF_FFFF in _ISATAP
    if address in _NAT64 or address in _COMPATIBLE or isatap:
        found.append(last)
    return found
