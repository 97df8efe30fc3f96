"""Calls of the memory server's tools, as a model makes them."""

from collections.abc import Mapping, Sequence

from tests.support.scripted_client_model import Call


def create_entity(name: str, *observations: str) -> Call:
    """Store a new entity with its observations."""
    return create_entities({name: observations})


def create_entities(entities: Mapping[str, Sequence[str]]) -> Call:
    """Store several new entities in one call."""
    return Call(
        "mcp__memory__create_entities",
        {
            "entities": [
                {"name": name, "entityType": "note", "observations": list(observations)}
                for name, observations in entities.items()
            ]
        },
    )


def add_observations(name: str, *observations: str) -> Call:
    """Add observations to an entity that is there."""
    return Call(
        "mcp__memory__add_observations", {"observations": [{"entityName": name, "contents": list(observations)}]}
    )


def delete_observations(name: str, *observations: str) -> Call:
    """Remove observations from an entity."""
    return Call(
        "mcp__memory__delete_observations", {"deletions": [{"entityName": name, "observations": list(observations)}]}
    )


def delete_entities(*names: str) -> Call:
    """Remove entities with all their observations."""
    return Call("mcp__memory__delete_entities", {"entityNames": list(names)})
