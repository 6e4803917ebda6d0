"""``/v1/processors``: who does the work, as this replica's mirror has it."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from hascheduler.api.access import ViewerOfAll
from hascheduler.api.services import Services

router = APIRouter(prefix="/processors", tags=["cluster"])


class ProcessorResponse(BaseModel):
    id: str = Field(description="Unique per process start")
    name: str
    shard: str
    definitions: list[str] = Field(description="What it runs; `*` is everything")
    slots: int
    resources: dict[str, int] = Field(description="What its jobs share besides the slots")
    occupied: int = Field(description="Slots with a dispatched or running job")
    alive: bool = Field(description="Whether its heartbeat still changes")
    draining: bool = Field(description="It gets no new jobs")
    parked: int = Field(description="Messages that it could not read")


class ProcessorsResponse(BaseModel):
    items: list[ProcessorResponse]


@router.get("")
async def list_processors(services: Services, caller: ViewerOfAll) -> ProcessorsResponse:
    """All processors that are registered, by id."""
    return ProcessorsResponse(
        items=[
            ProcessorResponse(
                id=processor.id,
                name=processor.name,
                shard=processor.shard,
                definitions=sorted(processor.definitions),
                slots=processor.slots,
                resources=dict(processor.resources),
                occupied=occupied,
                alive=alive,
                draining=processor.draining,
                parked=processor.parked,
            )
            for processor, occupied, alive in services.view.cluster().processors
        ]
    )
