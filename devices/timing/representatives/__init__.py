"""Ranks that do the same, played once: what stands for what, whether it is alike, and how its flows share links."""
