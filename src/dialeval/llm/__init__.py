"""Language models as judges.

`protocol` turns rows into prompts, `client` sends them to a server that speaks OpenAI's chat completions, `reading`
turns answers into values, `asking` asks many questions with a cache and a limit on the cost, `judge` is the metric.
"""
