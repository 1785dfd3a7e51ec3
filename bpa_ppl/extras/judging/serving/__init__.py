"""An HTTP service that reranks: the extra `serve`, with Starlette and uvicorn."""
