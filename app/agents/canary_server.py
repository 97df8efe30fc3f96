"""A memory server for the canary: it speaks MCP on stdin and stdout, and writes down each call that reaches it.

Run by the agent client as `python canary_server.py FILE`; standard library only, since any Python may run it.
"""

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "create_entities",
    "description": "Remember entities.",
    "inputSchema": {"type": "object", "properties": {"entities": {"type": "array", "items": {"type": "object"}}}},
}


def reply(request: dict[str, Any], reached: Path) -> dict[str, Any] | None:
    """The result of a request; None to a notification. A tool call is written down."""
    if "id" not in request:
        return None
    match request.get("method"):
        case "initialize":
            version = request.get("params", {}).get("protocolVersion", "2025-06-18")
            server = {"name": "canary", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            with reached.open("a", encoding="utf-8") as file:
                file.write(json.dumps(request.get("params")) + "\n")
            return {"content": [{"type": "text", "text": "stored"}]}
    return {}


def main() -> None:
    """Answer requests, one JSON object a line, until stdin ends."""
    reached = Path(sys.argv[1])
    for line in sys.stdin:
        if line.strip():
            request = json.loads(line)
            result = reply(request, reached)
            if result is not None:
                answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                sys.stdout.write(json.dumps(answer) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
