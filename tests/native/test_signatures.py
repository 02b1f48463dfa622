"""Types of arguments as keys, which are hashed once."""

import numpy as np
from plaingrad.native.border.conversion import Signature, signature_of


def test_a_signature_is_the_tuple_of_its_types():
    found = signature_of((1.0, np.ones(3)))
    assert type(found) is Signature and found == tuple(found) and hash(found) == hash(tuple(found)) == hash(found)
    assert signature_of((2.0, np.zeros(5))) is found
    assert signature_of((2.0, np.zeros((5, 1)))) != found
    assert {tuple(found): "known"}[found] == "known"
    assert signature_of((1.0, (2.0, 3.0))) == signature_of((1.0, (2.0, 3.0)))
