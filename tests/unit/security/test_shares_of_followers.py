"""Event streams and recordings of the leader: a caller that opens all it can keeps no other out."""

from hascheduler.api.edge import Edge
from hascheduler.api.http.shares import PoolRequest, Slot, token_party
from hascheduler.api.middleware.pools import FOLLOWERS_MAX, RECORDINGS_MAX
from tests.unit.api.doubles import World
from tests.unit.api.test_recording import HEADING
from tests.unit.security.crowding import crowded, until


async def test_a_viewer_who_follows_all_it_can_keeps_no_one_else_out(app: Edge, world: World) -> None:
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("viewer", "acme")
        streams = 0
        while (await (await greedy.begin("GET", "/v1/events")).readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200"):
            streams += 1
        assert 0 < streams <= FOLLOWERS_MAX / 2
        assert world.pools.in_flight.in_use == 0, "who follows is not in flight"
        await crowd.others_get_in()
        await greedy.leave()
        await until(lambda: world.pools.followers.held(token_party(greedy.id)) == 0)


async def test_an_operator_who_records_all_it_can_keeps_no_one_else_out(app: Edge, world: World) -> None:
    world.view.heading = HEADING
    greedy = PoolRequest((token_party("greedy"),))
    while isinstance(world.pools.recordings.admit(greedy), Slot):
        pass
    held = world.pools.recordings.in_use
    assert held == RECORDINGS_MAX / 2
    async with crowded(app, world) as crowd:
        reader = await (await crowd.caller("operator")).begin("GET", "/v1/cluster/recording?for=1s")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    await until(lambda: world.pools.recordings.in_use == held)
