"""What `make demo` runs: a model fitted to real data, then a gradient through somebody else's package.

python examples/demo.py
"""

import warnings

with warnings.catch_warnings():  # colour-science mentions the optional packages that it misses
    warnings.simplefilter("ignore")
    import colour_difference

import lynx_hare

NEXT = """
What to try next:
  python -c "import plaingrad; print(plaingrad.grad(lambda x: x**3)(2.0))"   12.0; go on in docs/tutorial/
  python examples/gallery.py                                                 eleven more problems with real data
  plaingrad check your_file.py:loss --at '[1.5, 2.0]'                        is a gradient of your own code right?
"""

if __name__ == "__main__":
    lynx_hare.main()
    print("\n")
    colour_difference.main()
    print(NEXT)
