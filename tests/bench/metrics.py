"""What a replica tells of itself."""

import httpx


async def read_metrics(http: httpx.AsyncClient) -> dict[str, float]:
    """Each sample by its name, with its labels as they stand in the text."""
    text = (await http.get("/metrics")).raise_for_status().text
    rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in rows}
