"""How texts and tables are shown to people: on terminals, and as HTML in notebooks."""
