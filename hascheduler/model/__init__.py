"""The nouns that cross rooms, one file a noun: frozen values without behaviour beyond their own meaning.

Their stored forms are in `documents`, single values in `values`. Nothing here knows a driver, a clock or an event loop.
"""
