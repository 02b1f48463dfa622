"""What `make demo` runs: a model fitted to real data, then a gradient through somebody else's package.

python examples/demo.py
"""

import warnings

with warnings.catch_warnings():  # colour-science mentions the optional packages that it misses
    warnings.simplefilter("ignore")
    import colour_difference

import lynx_hare

if __name__ == "__main__":
    lynx_hare.main()
    print("\n")
    colour_difference.main()
