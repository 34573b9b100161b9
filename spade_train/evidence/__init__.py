"""The evidence: arms and seeds trained side by side, compared at equal cost, told as it came out.

`make evidence` runs `python -m spade_train.evidence`. Runs go to a folder of their own and are
never repeated once they are finished; the pages are written from the run folders alone.
"""
