"""What a user sees stays as it is, byte for byte, unless a change says otherwise in `data/golden.txt`."""

from __future__ import annotations

from golden import LIST, lines


def test_what_a_user_sees_is_what_it_was():
    known = LIST.read_text(encoding="utf-8").splitlines()
    assert len(known) > 300
    found = list(lines())
    changed = [line for line in found if line not in known]
    assert changed == [], "python tests/golden.py writes the list anew, where this is meant"
    assert len(found) == len(known)
