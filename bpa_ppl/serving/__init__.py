"""An HTTP service that reranks: the extra `serve`, with Starlette and uvicorn."""

from bpa_ppl.serving.app import application
from bpa_ppl.serving.server import serve

__all__ = ["application", "serve"]
