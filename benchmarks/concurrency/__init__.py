"""Programs that use several threads: how much quicker they are than in one, forwards and on the way back."""
