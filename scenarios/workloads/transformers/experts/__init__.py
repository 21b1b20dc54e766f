"""Layers of experts: a router chooses them, tokens go to the ranks that have them and come back.

router      which experts a token goes to, and how much each counts
dispatch    the way there and back
layers      the whole layer: routed experts, and the shared one
"""
