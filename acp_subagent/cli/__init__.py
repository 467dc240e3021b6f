"""The command line: one task given to one agent, its answer on stdout, everything else on stderr.

`commands` reads the arguments, `run` conducts the run, `render` and `json_result` say what came of it,
`exit_codes` turns that into a number. What the agent says is shown only as its answer (or as a question on
the terminal); the notes on stderr are made of our own words and numbers.
"""
