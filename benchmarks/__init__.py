"""Times of plaingrad beside its peers: `python -m benchmarks`."""
