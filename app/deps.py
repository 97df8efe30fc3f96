"""What routes ask for: the parts and the settings of the running app, and a caller who may do what they do."""

from typing import Annotated, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from app.callers import Caller, Right
from app.door import Doorkeeper
from app.errors import ConfigurationError, Conflict, Forbidden
from app.keys import Pepper
from app.pipeline import Pipeline
from app.queue import Queue
from app.settings import Settings

# Only declares the key in the description of the interface; the door has looked at it already.
_bearer = HTTPBearer(
    scheme_name="key",
    auto_error=False,
    description="A key of the service, as `bouncer keys create` makes it. A service that listens on its own machine "
    "only, and for which there has never been a key, asks for none.",
)


class Needs:
    """A route's demand for a right; gives the caller who has it."""

    def __init__(self, right: Right) -> None:
        self.right = right

    async def __call__(
        self, request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
    ) -> Caller:
        """Who asks.

        Raises:
            Forbidden: the role of the caller's key does not include the right.
        """
        caller = cast("Caller", request.state.caller)
        if not caller.may(self.right):
            raise Forbidden(f"The role {caller.role} does not include the right to {self.right}.")
        return caller


async def _pipeline(request: Request) -> Pipeline:
    return cast("Pipeline", request.app.state.pipeline)


async def _queue(request: Request) -> Queue:
    return cast("Queue", request.app.state.queue)


async def _settings(request: Request) -> Settings:
    return cast("Settings", request.app.state.settings)


async def _doorkeeper(request: Request) -> Doorkeeper:
    return cast("Doorkeeper", request.app.state.doorkeeper)


async def _pepper(doorkeeper: Annotated[Doorkeeper, Depends(_doorkeeper)]) -> Pepper:
    try:
        return doorkeeper.pepper
    except ConfigurationError as exc:
        raise Conflict(exc.detail) from exc


# Each route but those of operation takes one of these, and hands it down.
Reader = Annotated[Caller, Depends(Needs(Right.READ))]
Proposer = Annotated[Caller, Depends(Needs(Right.PROPOSE))]
Decider = Annotated[Caller, Depends(Needs(Right.DECIDE))]
Administrator = Annotated[Caller, Depends(Needs(Right.ADMINISTER))]

PipelineDep = Annotated[Pipeline, Depends(_pipeline)]
QueueDep = Annotated[Queue, Depends(_queue)]
SettingsDep = Annotated[Settings, Depends(_settings)]
DoorkeeperDep = Annotated[Doorkeeper, Depends(_doorkeeper)]
PepperDep = Annotated[Pepper, Depends(_pepper)]
