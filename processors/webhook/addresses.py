"""Which addresses are of the public internet, and what the others are.

Source: the IANA special-purpose address registries (RFC 6890 and its updates), written out here because the standard
library's own judgement differs from one Python release to the next. Addresses that carry another one inside
(IPv4-mapped, 6to4, NAT64) are judged by that one; Teredo and other tunnels are refused as such.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_SPECIAL_4 = {
    IPv4Network(network): kind
    for network, kind in {
        "0.0.0.0/8": "unspecified",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "carrier-grade NAT",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "the platform's own (Azure)",  # public by its number, the host's agent in truth
        "169.254.0.0/16": "link-local",  # where clouds keep their metadata and credentials
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "documentation",
        "192.88.99.0/24": "6to4 relay",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "benchmarking",
        "198.51.100.0/24": "documentation",
        "203.0.113.0/24": "documentation",
        "224.0.0.0/4": "multicast",
        "255.255.255.255/32": "broadcast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_SPECIAL_6 = {
    IPv6Network(network): kind
    for network, kind in {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::/96": "IPv4-compatible",
        "64:ff9b:1::/48": "NAT64 of a private network",
        "100::/64": "discard-only",
        "2001::/32": "Teredo",
        "2001::/23": "reserved",
        "2001:db8::/32": "documentation",
        "3fff::/20": "documentation",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "site-local",
        "ff00::/8": "multicast",
    }.items()
}
_GLOBAL_6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def unwrapped(address: Address) -> Address:
    """The IPv4 address inside, where there is one; else ``address`` itself, without the zone that it may name."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or IPv6Address(int(address))


def special_kind(address: Address) -> str | None:
    """What kind of address it is that is not of the public internet; None for one that is."""
    inner = unwrapped(address)
    if isinstance(inner, IPv4Address):
        return next((kind for network, kind in _SPECIAL_4.items() if inner in network), None)
    kind = next((kind for network, kind in _SPECIAL_6.items() if inner in network), None)
    return kind or (None if inner in _GLOBAL_6 else "reserved")
