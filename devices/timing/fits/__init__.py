"""Fitted models of op times: formulas with fitted numbers and surfaces of residuals, and how files hold them."""
