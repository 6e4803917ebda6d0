"""What to write in place of a name that is no IANA time zone."""

from collections.abc import Mapping

from tzlocal.windows_tz import win_tz

from hascheduler.model.values.error_texts import near_names

_EXPECTED = "an IANA time zone such as Europe/Paris"
_REGIONS: Mapping[str, str] = {
    "acdt": "Australia/Adelaide",
    "acst": "Australia/Adelaide or Australia/Darwin",
    "adt": "America/Halifax",
    "aedt": "Australia/Sydney",
    "aest": "Australia/Sydney or Australia/Brisbane",
    "akdt": "America/Anchorage",
    "akst": "America/Anchorage",
    "art": "America/Argentina/Buenos_Aires",
    "ast": "America/Halifax or Asia/Riyadh",
    "awst": "Australia/Perth",
    "brt": "America/Sao_Paulo",
    "bst": "Europe/London or Asia/Dhaka",
    "cat": "Africa/Maputo",
    "cdt": "America/Chicago or America/Havana",
    "cest": "Europe/Paris",
    "clt": "America/Santiago",
    "cot": "America/Bogota",
    "cst": "America/Chicago, Asia/Shanghai or America/Havana",
    "ct": "America/Chicago",
    "eat": "Africa/Nairobi",
    "edt": "America/New_York",
    "eest": "Europe/Athens",
    "et": "America/New_York",
    "gst": "Asia/Dubai",
    "hdt": "America/Adak",
    "hkt": "Asia/Hong_Kong",
    "ict": "Asia/Bangkok",
    "idt": "Asia/Jerusalem",
    "ist": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
    "jst": "Asia/Tokyo",
    "kst": "Asia/Seoul",
    "mdt": "America/Denver",
    "mest": "Europe/Paris",
    "mesz": "Europe/Berlin",
    "mez": "Europe/Berlin",
    "msk": "Europe/Moscow",
    "mt": "America/Denver",
    "myt": "Asia/Kuala_Lumpur",
    "ndt": "America/St_Johns",
    "npt": "Asia/Kathmandu",
    "nst": "America/St_Johns",
    "nzdt": "Pacific/Auckland",
    "nzst": "Pacific/Auckland",
    "pdt": "America/Los_Angeles",
    "pet": "America/Lima",
    "pht": "Asia/Manila",
    "pkt": "Asia/Karachi",
    "pst": "America/Los_Angeles or Asia/Manila",
    "pt": "America/Los_Angeles",
    "sast": "Africa/Johannesburg",
    "sgt": "Asia/Singapore",
    "sst": "Pacific/Pago_Pago",
    "trt": "Europe/Istanbul",
    "wast": "Africa/Lagos",
    "wat": "Africa/Lagos",
    "west": "Europe/Lisbon",
    "wib": "Asia/Jakarta",
    "wit": "Asia/Jayapura",
    "wita": "Asia/Makassar",
}
"""Abbreviations that are in use and are no IANA names. One may stand for several regions."""
_OF_WINDOWS = {name.lower(): zone for name, zone in win_tz.items()}
"""The names of Windows, by the CLDR table."""


def expected_zone(name: str, known: Mapping[str, str]) -> str:
    """Return what would be right: ``known`` has the zones by their names in lower case.

    Only a misspelt region is guessed by its letters: an abbreviation or an offset resembles others that mean
    something else.
    """
    low = name.strip().lower()
    if low in _REGIONS:
        return f"a region, such as {_REGIONS[low]}"
    if low in _OF_WINDOWS:
        return _OF_WINDOWS[low]
    is_region = "/" in low and not any(sign.isdigit() for sign in low)
    near = near_names(low, known, 1) if is_region else []
    return known[near[0]] if near else _EXPECTED
