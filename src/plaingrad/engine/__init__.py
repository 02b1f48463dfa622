"""The plain tier's engine: levels, the one call decision, the tape, memory of arrays, fresh inputs."""
