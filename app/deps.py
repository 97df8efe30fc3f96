"""What routes ask for: the pipeline and the settings of the running app."""

from typing import Annotated, cast

from fastapi import Depends, Request

from app.pipeline import Pipeline
from app.settings import Settings


def _pipeline(request: Request) -> Pipeline:
    return cast("Pipeline", request.app.state.pipeline)


def _settings(request: Request) -> Settings:
    return cast("Settings", request.app.state.settings)


PipelineDep = Annotated[Pipeline, Depends(_pipeline)]
SettingsDep = Annotated[Settings, Depends(_settings)]
