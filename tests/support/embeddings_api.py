"""An embeddings server of a test's own: speaks OpenAI's API on a free loopback port.

with embeddings_api() as url:
    embedder = EndpointEmbedder(url, "test")
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.pipelines import embedder

DIMENSION = 64


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Answer with the first dimensions of the embedded model's vectors."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = embedder().embed(asked["input"])[:, :DIMENSION]
        data = [{"index": place, "embedding": vector.tolist()} for place, vector in enumerate(vectors)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def embeddings_api() -> Iterator[str]:
    """The base URL of a running server, which ends with the context."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
